
/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!40101 SET @OLD_CHARACTER_SET_RESULTS=@@CHARACTER_SET_RESULTS */;
/*!40101 SET @OLD_COLLATION_CONNECTION=@@COLLATION_CONNECTION */;
/*!40101 SET NAMES utf8mb4 */;
/*!40103 SET @OLD_TIME_ZONE=@@TIME_ZONE */;
/*!40103 SET TIME_ZONE='+00:00' */;
/*!40014 SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0 */;
/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */;
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;
/*!40111 SET @OLD_SQL_NOTES=@@SQL_NOTES, SQL_NOTES=0 */;
DROP TABLE IF EXISTS `alembic_version`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `alembic_version` (
  `version_num` varchar(32) NOT NULL,
  PRIMARY KEY (`version_num`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `alembic_version` WRITE;
/*!40000 ALTER TABLE `alembic_version` DISABLE KEYS */;
INSERT INTO `alembic_version` VALUES ('02e2f2186d98');
/*!40000 ALTER TABLE `alembic_version` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `computehost_allocations`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `computehost_allocations` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` varchar(36) NOT NULL,
  `compute_host_id` varchar(36) DEFAULT NULL,
  `reservation_id` varchar(36) DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `compute_host_id` (`compute_host_id`),
  KEY `reservation_id` (`reservation_id`),
  CONSTRAINT `computehost_allocations_ibfk_1` FOREIGN KEY (`compute_host_id`) REFERENCES `computehosts` (`id`),
  CONSTRAINT `computehost_allocations_ibfk_2` FOREIGN KEY (`reservation_id`) REFERENCES `reservations` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `computehost_allocations` WRITE;
/*!40000 ALTER TABLE `computehost_allocations` DISABLE KEYS */;
INSERT INTO `computehost_allocations` VALUES ('2026-11-23 14:25:34',NULL,'01d7d0c0-6980-54fc-814b-8c91e41a3052','ff139314-505d-54d8-9a68-0644a9d03c04','84bfabbd-c0f7-5f2f-af0a-ec529b3aace6');
INSERT INTO `computehost_allocations` VALUES ('2026-11-23 14:25:34',NULL,'0429e978-4923-567d-a541-6b8f93faf548','3','84bfabbd-c0f7-5f2f-af0a-ec529b3aace6');
INSERT INTO `computehost_allocations` VALUES ('2026-11-23 14:25:34',NULL,'268b4c94-dda8-5c3d-a548-6052e3a7b72d','1','6a941b5a-cc7d-563d-a5a2-4e7e520fcf7f');
INSERT INTO `computehost_allocations` VALUES ('2026-11-23 14:25:34',NULL,'3daa3c86-6a96-552b-bc4b-16c9dd1aa5d5','2','7131c8b3-e259-5b66-a0fa-6130c6c725fb');
INSERT INTO `computehost_allocations` VALUES ('2026-11-23 14:25:34',NULL,'440bac3d-59ae-5e4d-b82c-b6edb1de075f','2','6a941b5a-cc7d-563d-a5a2-4e7e520fcf7f');
INSERT INTO `computehost_allocations` VALUES ('2026-11-23 14:25:34',NULL,'597fd1bf-4567-5d8b-af30-71155abec4b6','5','eadbc4fd-f4a8-50d4-b9a9-0ad1c0a5432d');
INSERT INTO `computehost_allocations` VALUES ('2026-11-23 14:25:33',NULL,'5cff71c5-386c-5b91-ac31-d3be48978f72','1','8b528a2a-5e82-548e-9b25-b3a89719a9d3');
INSERT INTO `computehost_allocations` VALUES ('2026-11-23 14:25:34',NULL,'89765556-2817-55bc-ad33-c156696e27bb','2','48d24c0f-b23b-5720-a8db-c7539d598018');
INSERT INTO `computehost_allocations` VALUES ('2026-11-23 14:25:34',NULL,'a02f2cea-833c-5124-a272-f7428d0cdda3','3','c2b251e7-b290-5cc2-b952-16b31964408b');
INSERT INTO `computehost_allocations` VALUES ('2026-11-23 14:25:34',NULL,'e0246a50-3bb2-58ac-9f6a-8adc885c7467','3','84bfabbd-c0f7-5f2f-af0a-ec529b3aace6');
INSERT INTO `computehost_allocations` VALUES ('2026-11-23 14:25:34',NULL,'e39cf779-0d7f-5581-85b0-c2501da1bf50','7','cf571412-b24b-5607-9f5b-17ece99c075f');
INSERT INTO `computehost_allocations` VALUES ('2026-11-23 14:25:34',NULL,'f3c20c40-bd5e-5057-a904-5ad466851ff1','2','ec328bfc-2320-5f33-b56d-0b3ba6e340d3');
INSERT INTO `computehost_allocations` VALUES ('2026-11-23 14:25:34',NULL,'f3ee9b15-bd84-5852-a416-36fdf9bd19f7','3','2faf5c6d-b73d-5d51-9393-4b9967cd731e');
/*!40000 ALTER TABLE `computehost_allocations` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `computehost_extra_capabilities`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `computehost_extra_capabilities` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` varchar(36) NOT NULL,
  `computehost_id` varchar(36) DEFAULT NULL,
  `capability_value` mediumtext NOT NULL,
  `property_id` varchar(255) NOT NULL,
  PRIMARY KEY (`id`),
  KEY `computehost_id` (`computehost_id`),
  KEY `computehost_resource_property_id_fk` (`property_id`),
  CONSTRAINT `computehost_extra_capabilities_ibfk_1` FOREIGN KEY (`computehost_id`) REFERENCES `computehosts` (`id`),
  CONSTRAINT `computehost_resource_property_id_fk` FOREIGN KEY (`property_id`) REFERENCES `resource_properties` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `computehost_extra_capabilities` WRITE;
/*!40000 ALTER TABLE `computehost_extra_capabilities` DISABLE KEYS */;
INSERT INTO `computehost_extra_capabilities` VALUES ('2026-11-23 14:25:33',NULL,'2d578326-84d2-5643-8cca-ab213fd5b496','1','2','4798871a-bfd8-4be4-885e-7e0b290c7d78');
INSERT INTO `computehost_extra_capabilities` VALUES ('2026-11-23 14:25:33',NULL,'76dd0895-d3f9-56b1-87ea-7ec36e4dbdb4','3','r2','1892b121-75da-47b9-b309-3264585ed978');
INSERT INTO `computehost_extra_capabilities` VALUES ('2026-11-23 14:25:33',NULL,'92069056-3293-5413-83c8-30c86df09bc2','ff139314-505d-54d8-9a68-0644a9d03c04','r2','1892b121-75da-47b9-b309-3264585ed978');
INSERT INTO `computehost_extra_capabilities` VALUES ('2026-11-23 14:25:33',NULL,'ce9c678e-1048-58b5-94a2-d18ff4595ba6','1','r1','1892b121-75da-47b9-b309-3264585ed978');
INSERT INTO `computehost_extra_capabilities` VALUES ('2026-11-23 14:25:33',NULL,'efb867eb-8f88-51e6-9d26-9f7f4711b742','2','r1','1892b121-75da-47b9-b309-3264585ed978');
/*!40000 ALTER TABLE `computehost_extra_capabilities` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `computehost_reservations`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `computehost_reservations` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` varchar(36) NOT NULL,
  `reservation_id` varchar(36) DEFAULT NULL,
  `resource_properties` mediumtext DEFAULT NULL,
  `count_range` varchar(36) DEFAULT NULL,
  `hypervisor_properties` mediumtext DEFAULT NULL,
  `aggregate_id` int(11) DEFAULT NULL,
  `before_end` varchar(36) DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `reservation_id` (`reservation_id`),
  CONSTRAINT `computehost_reservations_ibfk_1` FOREIGN KEY (`reservation_id`) REFERENCES `reservations` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `computehost_reservations` WRITE;
/*!40000 ALTER TABLE `computehost_reservations` DISABLE KEYS */;
INSERT INTO `computehost_reservations` VALUES ('2026-11-23 14:25:34',NULL,'1b4d63dc-a5e8-515c-ad83-913513a48e55','6a941b5a-cc7d-563d-a5a2-4e7e520fcf7f','','1-3','',7,'snapshot');
INSERT INTO `computehost_reservations` VALUES ('2026-11-23 14:25:33',NULL,'38eb2eee-3b32-5bad-bbf5-d4af26139fff','8b528a2a-5e82-548e-9b25-b3a89719a9d3','[\">=\", \"$gpu_count\", \"2\"]','1-1','',7,'default');
INSERT INTO `computehost_reservations` VALUES ('2026-11-23 14:25:34',NULL,'3cb457e4-6706-5ad7-a5c6-91a8cad88098','cf571412-b24b-5607-9f5b-17ece99c075f','','1-1','',7,'default');
INSERT INTO `computehost_reservations` VALUES ('2026-11-23 14:25:34',NULL,'5de01577-7285-502f-b630-db8e0363a8da','ec328bfc-2320-5f33-b56d-0b3ba6e340d3','','1-1','',7,'default');
INSERT INTO `computehost_reservations` VALUES ('2026-11-23 14:25:34',NULL,'60d6f6cd-8bf7-5c35-8ca4-6acada4b2b78','eadbc4fd-f4a8-50d4-b9a9-0ad1c0a5432d','','1-1','',7,'default');
INSERT INTO `computehost_reservations` VALUES ('2026-11-23 14:25:34',NULL,'675631a4-56f6-5320-b694-d0c2761fda0a','5b6aa66c-9675-5d52-b004-1012686a6874','','1-1','',7,'default');
INSERT INTO `computehost_reservations` VALUES ('2026-11-23 14:25:34',NULL,'82ab99cf-5676-5840-be0d-be9847497361','2faf5c6d-b73d-5d51-9393-4b9967cd731e','','2-2','',7,'default');
INSERT INTO `computehost_reservations` VALUES ('2026-11-23 14:25:34',NULL,'98cffeb6-dbca-5b79-bfc3-e38512e35448','7131c8b3-e259-5b66-a0fa-6130c6c725fb','','1-1','',7,'default');
INSERT INTO `computehost_reservations` VALUES ('2026-11-23 14:25:34',NULL,'d80888fb-d00b-5513-971b-d37873f143b8','48d24c0f-b23b-5720-a8db-c7539d598018','','1-1','',7,'default');
/*!40000 ALTER TABLE `computehost_reservations` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `computehosts`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `computehosts` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` varchar(36) NOT NULL,
  `vcpus` int(11) NOT NULL,
  `cpu_info` mediumtext NOT NULL,
  `hypervisor_type` mediumtext NOT NULL,
  `hypervisor_version` int(11) NOT NULL,
  `hypervisor_hostname` varchar(255) DEFAULT NULL,
  `memory_mb` int(11) NOT NULL,
  `local_gb` int(11) NOT NULL,
  `status` varchar(13) DEFAULT NULL,
  `service_name` varchar(255) DEFAULT NULL,
  `trust_id` varchar(36) NOT NULL,
  `reservable` tinyint(1) NOT NULL DEFAULT 1,
  `availability_zone` varchar(255) NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `computehosts` WRITE;
/*!40000 ALTER TABLE `computehosts` DISABLE KEYS */;
INSERT INTO `computehosts` VALUES ('2029-12-22 12:00:00',NULL,'1',16,'{\"arch\": \"x86_64\"}','QEMU',7002000,'compute-1.example',32768,500,NULL,'compute-1','afd304af-8c49-58e4-ab5a-bdc4fc8413c1',1,'nova');
INSERT INTO `computehosts` VALUES ('2029-12-22 12:00:00',NULL,'2',16,'{\"arch\": \"x86_64\"}','QEMU',7002000,'compute-2.example',32768,500,NULL,'compute-2','afd304af-8c49-58e4-ab5a-bdc4fc8413c1',1,'nova');
INSERT INTO `computehosts` VALUES ('2029-12-22 12:00:00',NULL,'3',16,'{\"arch\": \"x86_64\"}','QEMU',7002000,'compute-3.example',32768,500,NULL,'compute-3','afd304af-8c49-58e4-ab5a-bdc4fc8413c1',1,'nova');
INSERT INTO `computehosts` VALUES ('2029-12-22 12:00:00',NULL,'5',16,'{\"arch\": \"x86_64\"}','QEMU',7002000,'vanished.example',32768,500,NULL,'vanished','afd304af-8c49-58e4-ab5a-bdc4fc8413c1',1,'nova');
INSERT INTO `computehosts` VALUES ('2029-12-22 12:00:00',NULL,'6',16,'{\"arch\": \"x86_64\"}','QEMU',7002000,'compute-6.example',32768,500,NULL,'compute-6','afd304af-8c49-58e4-ab5a-bdc4fc8413c1',0,'nova');
INSERT INTO `computehosts` VALUES ('2029-12-22 12:00:00',NULL,'7',16,'{\"arch\": \"x86_64\"}','QEMU',7002000,'compute-7.example',32768,500,NULL,'compute-7','afd304af-8c49-58e4-ab5a-bdc4fc8413c1',1,'nova');
INSERT INTO `computehosts` VALUES ('2029-12-22 12:00:00',NULL,'ff139314-505d-54d8-9a68-0644a9d03c04',16,'{\"arch\": \"x86_64\"}','QEMU',7002000,'compute-4.example',32768,500,NULL,'compute-4','afd304af-8c49-58e4-ab5a-bdc4fc8413c1',1,'nova');
/*!40000 ALTER TABLE `computehosts` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `events`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `events` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` varchar(36) NOT NULL,
  `lease_id` varchar(36) DEFAULT NULL,
  `event_type` varchar(66) DEFAULT NULL,
  `time` datetime DEFAULT NULL,
  `status` varchar(13) DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `lease_id` (`lease_id`),
  CONSTRAINT `events_ibfk_1` FOREIGN KEY (`lease_id`) REFERENCES `leases` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `events` WRITE;
/*!40000 ALTER TABLE `events` DISABLE KEYS */;
INSERT INTO `events` VALUES ('2026-11-23 14:25:33',NULL,'0887e524-343e-5870-9cc7-bd2df18c2a98','e9cbd459-6a66-5592-88a3-ec1ad02c5d79','before_end_lease','2030-01-01 14:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'0d541ad5-892c-5559-b354-6ab113d366f1','574f4681-c39e-5a04-87eb-a533266e760c','before_end_lease','2030-01-03 05:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'0ddd5b70-6003-5c0f-9cf4-b063fd140f47','c74d52a7-aeb4-5f0c-ace8-6a410b1525d2','end_lease','2030-01-01 16:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'1605b7fb-dbd7-5e37-8869-d21b4d54f86d','438fe270-b29e-5c3f-858c-33e1f07d654d','before_end_lease','2030-01-01 17:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'18f4c3c7-89cc-52a3-91ec-af32936a7ede','a3fa85cc-d7ee-5f94-898b-a466a4f15dc0','end_lease','2030-01-03 16:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'22728f82-20f2-555d-986f-c005ce1d73c9','c74d52a7-aeb4-5f0c-ace8-6a410b1525d2','start_lease','2030-01-01 11:00:00','ERROR');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'29151cc6-87f5-5aad-bf95-10a5e4709011','b3049c22-95dc-556a-8d57-72ca0e04dfd4','end_lease','2030-01-01 17:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'2c7fe1f5-a7ea-569f-a1b1-bb7ac8cf069c','574f4681-c39e-5a04-87eb-a533266e760c','end_lease','2030-01-03 06:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:33',NULL,'31f69880-e3b7-56f3-bb18-24f1da57f148','438fe270-b29e-5c3f-858c-33e1f07d654d','start_lease','2030-01-01 15:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'441161e6-ea3c-5839-b335-2a00e53f2367','047e6230-670d-5c5e-82d4-9de66c857639','before_end_lease','2030-01-01 19:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'450c93c4-1a6f-55bc-b513-d9dc97f7aa07','55b831de-fe8f-58c5-bb1f-77799f72146c','start_lease','2030-01-01 11:00:00','DONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'4d25b151-8a39-5643-865d-a151e8b9161e','abc32d87-674b-56a9-b335-72ec9d5dc34e','start_lease','2030-01-01 22:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'53cdd1d8-13e8-5141-a0ac-73b499c36678','cd206f34-f223-505f-8bd0-8163469501d2','before_end_lease','2030-01-02 11:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'54f019a2-0036-59e6-90a2-ebea3d5e49fe','a3fa85cc-d7ee-5f94-898b-a466a4f15dc0','before_end_lease','2030-01-03 15:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'559eeb7d-6b93-5c98-b971-6fc1da250408','b3049c22-95dc-556a-8d57-72ca0e04dfd4','start_lease','2030-01-01 16:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'66cedb58-014c-5594-beb8-51703a83d6b7','bc99f666-07e0-5008-ac66-a1adf9c27031','end_lease','2030-01-03 06:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'7057d8fc-9a46-54d9-b2d7-c4146a1e1c26','e6ad27f0-569f-5939-8388-10de3d26e73b','end_lease','2030-01-01 17:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:33',NULL,'72c92bac-3795-5cd2-a077-8b8e25867732','e9cbd459-6a66-5592-88a3-ec1ad02c5d79','end_lease','2030-01-01 15:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'85d68bc7-811d-5e1b-8af1-36125cf2b8b5','e6ad27f0-569f-5939-8388-10de3d26e73b','start_lease','2030-01-01 11:00:00','DONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'93973525-e69f-577a-85f1-058d7addf63d','112a900d-5733-51a6-8918-34588d7999d0','end_lease','2029-12-31 16:00:00','DONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'a41cfd13-b5c4-5b8d-a47b-fbc8717db485','112a900d-5733-51a6-8918-34588d7999d0','before_end_lease','2029-12-31 15:00:00','DONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'a781c09b-1cc3-518f-bb69-075e815a245a','abc32d87-674b-56a9-b335-72ec9d5dc34e','end_lease','2030-01-02 00:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'ad2bb837-1316-513a-8b50-ed2abcf7e0cc','a3fa85cc-d7ee-5f94-898b-a466a4f15dc0','start_lease','2030-01-03 14:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'b0015cae-ec8c-504e-a14b-0fb0de9b875e','c74d52a7-aeb4-5f0c-ace8-6a410b1525d2','before_end_lease','2030-01-01 15:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:33',NULL,'b47d233d-8615-5b10-b09b-360059b69cbf','438fe270-b29e-5c3f-858c-33e1f07d654d','end_lease','2030-01-01 18:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'b916e83d-010a-5717-bc26-39b6efcdbd36','047e6230-670d-5c5e-82d4-9de66c857639','start_lease','2030-01-01 17:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'bda53d42-a7f7-523a-9eaf-2c70f683c7b4','574f4681-c39e-5a04-87eb-a533266e760c','start_lease','2030-01-03 04:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'c8a7db8a-9c3a-56f5-93ff-445d7caf914b','55b831de-fe8f-58c5-bb1f-77799f72146c','end_lease','2030-01-01 14:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'d0eb2e0e-eee1-5038-ad5d-2b67cb7c0b39','cd206f34-f223-505f-8bd0-8163469501d2','end_lease','2030-01-02 12:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'d13451da-ed93-5b67-9eca-006749732fa4','112a900d-5733-51a6-8918-34588d7999d0','start_lease','2029-12-31 06:00:00','DONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'d5ecef20-7e14-59e9-a65b-632c409c1f24','bc99f666-07e0-5008-ac66-a1adf9c27031','before_end_lease','2030-01-03 05:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'d68a04a1-43fc-556e-bf21-73b64102d09c','55b831de-fe8f-58c5-bb1f-77799f72146c','before_end_lease','2030-01-01 13:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'d8015425-db42-5c43-9f41-00b7f728ce41','e6ad27f0-569f-5939-8388-10de3d26e73b','before_end_lease','2030-01-01 16:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'df228c90-55f1-59b9-9eab-e42392a1be13','047e6230-670d-5c5e-82d4-9de66c857639','end_lease','2030-01-01 20:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'ec0788b7-4f9e-52c4-bb62-6f39a6d8caa9','cd206f34-f223-505f-8bd0-8163469501d2','start_lease','2030-01-02 08:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:33',NULL,'fac0c21b-f503-5238-80df-2f371bd68bd9','e9cbd459-6a66-5592-88a3-ec1ad02c5d79','start_lease','2030-01-01 10:00:00','DONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'fc7a55a0-dfb9-5b04-9617-dd7ad76f649e','bc99f666-07e0-5008-ac66-a1adf9c27031','start_lease','2030-01-03 04:00:00','UNDONE');
INSERT INTO `events` VALUES ('2026-11-23 14:25:34',NULL,'fe24036b-e189-57cb-a18e-42dcad04970e','abc32d87-674b-56a9-b335-72ec9d5dc34e','before_end_lease','2030-01-01 23:00:00','UNDONE');
/*!40000 ALTER TABLE `events` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `floatingip_allocations`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `floatingip_allocations` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` varchar(36) NOT NULL,
  `floatingip_id` varchar(36) DEFAULT NULL,
  `reservation_id` varchar(36) DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `floatingip_id` (`floatingip_id`),
  KEY `reservation_id` (`reservation_id`),
  CONSTRAINT `floatingip_allocations_ibfk_1` FOREIGN KEY (`floatingip_id`) REFERENCES `floatingips` (`id`),
  CONSTRAINT `floatingip_allocations_ibfk_2` FOREIGN KEY (`reservation_id`) REFERENCES `reservations` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `floatingip_allocations` WRITE;
/*!40000 ALTER TABLE `floatingip_allocations` DISABLE KEYS */;
INSERT INTO `floatingip_allocations` VALUES ('2026-11-23 14:25:34',NULL,'3bc47770-a0ca-59df-be58-78fc3de603a0','52b86a21-4a53-530e-a236-8fbe4c43d647','c12ff647-f15d-52d4-b1e0-996798241cdc');
INSERT INTO `floatingip_allocations` VALUES ('2026-11-23 14:25:34',NULL,'c92cc195-58e7-5924-a22a-d02e69f00eed','cc34b5f8-7189-506d-8a7c-c9542b165e91','4bf61d8e-b734-58d4-94df-8d9a5f203393');
INSERT INTO `floatingip_allocations` VALUES ('2026-11-23 14:25:34',NULL,'e2592723-5007-5284-b523-e5ac0ffdf053','c34d52a1-1920-5e49-9271-504e232e3c4f','c12ff647-f15d-52d4-b1e0-996798241cdc');
/*!40000 ALTER TABLE `floatingip_allocations` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `floatingip_reservations`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `floatingip_reservations` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` varchar(36) NOT NULL,
  `reservation_id` varchar(36) DEFAULT NULL,
  `network_id` varchar(255) NOT NULL,
  `amount` int(11) NOT NULL,
  PRIMARY KEY (`id`),
  KEY `reservation_id` (`reservation_id`),
  CONSTRAINT `floatingip_reservations_ibfk_1` FOREIGN KEY (`reservation_id`) REFERENCES `reservations` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `floatingip_reservations` WRITE;
/*!40000 ALTER TABLE `floatingip_reservations` DISABLE KEYS */;
INSERT INTO `floatingip_reservations` VALUES ('2026-11-23 14:25:34',NULL,'74c9cd4f-69d3-5c0e-bf83-9f531fb8a201','4bf61d8e-b734-58d4-94df-8d9a5f203393','external-network',1);
INSERT INTO `floatingip_reservations` VALUES ('2026-11-23 14:25:34',NULL,'aac2e918-f5bd-56b8-ad9c-e7e40e9a0469','c12ff647-f15d-52d4-b1e0-996798241cdc','external-network',2);
/*!40000 ALTER TABLE `floatingip_reservations` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `floatingips`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `floatingips` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` varchar(36) NOT NULL,
  `floating_network_id` varchar(255) NOT NULL,
  `subnet_id` varchar(255) NOT NULL,
  `floating_ip_address` varchar(255) NOT NULL,
  `reservable` tinyint(1) NOT NULL DEFAULT 1,
  PRIMARY KEY (`id`),
  UNIQUE KEY `subnet_id` (`subnet_id`,`floating_ip_address`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `floatingips` WRITE;
/*!40000 ALTER TABLE `floatingips` DISABLE KEYS */;
INSERT INTO `floatingips` VALUES ('2026-11-23 14:25:33',NULL,'52b86a21-4a53-530e-a236-8fbe4c43d647','external-network','external-subnet','203.0.113.10',1);
INSERT INTO `floatingips` VALUES ('2026-11-23 14:25:33',NULL,'c34d52a1-1920-5e49-9271-504e232e3c4f','external-network','external-subnet','203.0.113.11',1);
INSERT INTO `floatingips` VALUES ('2026-11-23 14:25:33',NULL,'cc34b5f8-7189-506d-8a7c-c9542b165e91','external-network','external-subnet','203.0.113.12',1);
/*!40000 ALTER TABLE `floatingips` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `instance_reservations`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `instance_reservations` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` varchar(36) NOT NULL,
  `reservation_id` varchar(36) DEFAULT NULL,
  `vcpus` int(11) NOT NULL,
  `memory_mb` int(11) NOT NULL,
  `disk_gb` int(11) NOT NULL,
  `amount` int(11) NOT NULL,
  `affinity` tinyint(1) DEFAULT NULL,
  `flavor_id` varchar(36) DEFAULT NULL,
  `aggregate_id` int(11) DEFAULT NULL,
  `server_group_id` varchar(36) DEFAULT NULL,
  `resource_properties` mediumtext DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `reservation_id` (`reservation_id`),
  CONSTRAINT `instance_reservations_ibfk_1` FOREIGN KEY (`reservation_id`) REFERENCES `reservations` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `instance_reservations` WRITE;
/*!40000 ALTER TABLE `instance_reservations` DISABLE KEYS */;
INSERT INTO `instance_reservations` VALUES ('2026-11-23 14:25:34',NULL,'2880b90c-7d3d-51f0-8003-17fbc4aa31e7','84bfabbd-c0f7-5f2f-af0a-ec529b3aace6',2,4096,20,3,0,'84bfabbd-c0f7-5f2f-af0a-ec529b3aace6',8,'aad780a5-fbc5-5812-b223-955a9a645c13','');
INSERT INTO `instance_reservations` VALUES ('2026-11-23 14:25:34',NULL,'f707e27e-9b8f-595a-94c0-b035491dc232','c2b251e7-b290-5cc2-b952-16b31964408b',2,4096,20,1,0,'c2b251e7-b290-5cc2-b952-16b31964408b',8,'09cfccb0-5a71-5b96-bc40-22fffa81a621','');
/*!40000 ALTER TABLE `instance_reservations` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `leases`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `leases` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` varchar(36) NOT NULL,
  `name` varchar(80) NOT NULL,
  `user_id` varchar(255) DEFAULT NULL,
  `project_id` varchar(255) DEFAULT NULL,
  `start_date` datetime NOT NULL,
  `end_date` datetime NOT NULL,
  `trust_id` varchar(36) DEFAULT NULL,
  `status` varchar(255) DEFAULT NULL,
  `degraded` tinyint(1) NOT NULL DEFAULT 0,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `leases` WRITE;
/*!40000 ALTER TABLE `leases` DISABLE KEYS */;
INSERT INTO `leases` VALUES ('2029-12-30 12:00:00',NULL,'047e6230-670d-5c5e-82d4-9de66c857639','next-servers','user-of-leases','project-of-leases','2030-01-01 17:00:00','2030-01-01 20:00:00','afd304af-8c49-58e4-ab5a-bdc4fc8413c1','PENDING',0);
INSERT INTO `leases` VALUES ('2029-12-30 12:00:00',NULL,'112a900d-5733-51a6-8918-34588d7999d0','over','user-of-leases','project-of-leases','2029-12-31 06:00:00','2029-12-31 16:00:00','afd304af-8c49-58e4-ab5a-bdc4fc8413c1','TERMINATED',0);
INSERT INTO `leases` VALUES ('2029-12-30 12:00:00',NULL,'438fe270-b29e-5c3f-858c-33e1f07d654d','next-hosts','user-of-leases','project-of-leases','2030-01-01 15:00:00','2030-01-01 18:00:00','afd304af-8c49-58e4-ab5a-bdc4fc8413c1','PENDING',0);
INSERT INTO `leases` VALUES ('2029-12-30 12:00:00',NULL,'55b831de-fe8f-58c5-bb1f-77799f72146c','active-address','user-of-leases','project-of-leases','2030-01-01 11:00:00','2030-01-01 14:00:00','afd304af-8c49-58e4-ab5a-bdc4fc8413c1','ACTIVE',0);
INSERT INTO `leases` VALUES ('2029-12-30 12:00:00',NULL,'574f4681-c39e-5a04-87eb-a533266e760c','of-another-plugin','user-of-leases','project-of-leases','2030-01-03 04:00:00','2030-01-03 06:00:00','afd304af-8c49-58e4-ab5a-bdc4fc8413c1','PENDING',0);
INSERT INTO `leases` VALUES ('2029-12-30 12:00:00',NULL,'a3fa85cc-d7ee-5f94-898b-a466a4f15dc0','on-a-vanished-host','user-of-leases','project-of-leases','2030-01-03 14:00:00','2030-01-03 16:00:00','afd304af-8c49-58e4-ab5a-bdc4fc8413c1','PENDING',0);
INSERT INTO `leases` VALUES ('2029-12-30 12:00:00',NULL,'abc32d87-674b-56a9-b335-72ec9d5dc34e','two-kinds','user-of-leases','project-of-leases','2030-01-01 22:00:00','2030-01-02 00:00:00','afd304af-8c49-58e4-ab5a-bdc4fc8413c1','PENDING',0);
INSERT INTO `leases` VALUES ('2029-12-31 12:00:00',NULL,'b3049c22-95dc-556a-8d57-72ca0e04dfd4','overlapping','user-of-leases','project-of-leases','2030-01-01 16:00:00','2030-01-01 17:00:00','afd304af-8c49-58e4-ab5a-bdc4fc8413c1','PENDING',0);
INSERT INTO `leases` VALUES ('2029-12-30 12:00:00',NULL,'bc99f666-07e0-5008-ac66-a1adf9c27031','being-updated','user-of-leases','project-of-leases','2030-01-03 04:00:00','2030-01-03 06:00:00','afd304af-8c49-58e4-ab5a-bdc4fc8413c1','UPDATING',0);
INSERT INTO `leases` VALUES ('2029-12-30 12:00:00',NULL,'c74d52a7-aeb4-5f0c-ace8-6a410b1525d2','failed-start','user-of-leases','project-of-leases','2030-01-01 11:00:00','2030-01-01 16:00:00','afd304af-8c49-58e4-ab5a-bdc4fc8413c1','ERROR',0);
INSERT INTO `leases` VALUES ('2029-12-30 12:00:00',NULL,'cd206f34-f223-505f-8bd0-8163469501d2','short-of-hosts','user-of-leases','project-of-leases','2030-01-02 08:00:00','2030-01-02 12:00:00','afd304af-8c49-58e4-ab5a-bdc4fc8413c1','PENDING',1);
INSERT INTO `leases` VALUES ('2029-12-30 12:00:00',NULL,'e6ad27f0-569f-5939-8388-10de3d26e73b','active-servers','user-of-leases','project-of-leases','2030-01-01 11:00:00','2030-01-01 17:00:00','afd304af-8c49-58e4-ab5a-bdc4fc8413c1','ACTIVE',0);
INSERT INTO `leases` VALUES ('2029-12-30 12:00:00',NULL,'e9cbd459-6a66-5592-88a3-ec1ad02c5d79','active-hosts','user-of-leases','project-of-leases','2030-01-01 10:00:00','2030-01-01 15:00:00','afd304af-8c49-58e4-ab5a-bdc4fc8413c1','ACTIVE',0);
/*!40000 ALTER TABLE `leases` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `required_floatingips`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `required_floatingips` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` varchar(36) NOT NULL,
  `address` varchar(255) NOT NULL,
  `floatingip_reservation_id` varchar(36) DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `floatingip_reservation_id` (`floatingip_reservation_id`),
  CONSTRAINT `required_floatingips_ibfk_1` FOREIGN KEY (`floatingip_reservation_id`) REFERENCES `floatingip_reservations` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `required_floatingips` WRITE;
/*!40000 ALTER TABLE `required_floatingips` DISABLE KEYS */;
INSERT INTO `required_floatingips` VALUES ('2026-11-23 14:25:34',NULL,'5f414716-a60f-5456-967b-86703dbf4767','203.0.113.11','aac2e918-f5bd-56b8-ad9c-e7e40e9a0469');
/*!40000 ALTER TABLE `required_floatingips` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `reservations`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `reservations` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` varchar(36) NOT NULL,
  `lease_id` varchar(36) NOT NULL,
  `resource_id` varchar(36) DEFAULT NULL,
  `resource_type` varchar(66) DEFAULT NULL,
  `status` varchar(13) DEFAULT NULL,
  `missing_resources` tinyint(1) NOT NULL DEFAULT 0,
  `resources_changed` tinyint(1) NOT NULL DEFAULT 0,
  PRIMARY KEY (`id`),
  KEY `lease_id` (`lease_id`),
  CONSTRAINT `reservations_ibfk_1` FOREIGN KEY (`lease_id`) REFERENCES `leases` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `reservations` WRITE;
/*!40000 ALTER TABLE `reservations` DISABLE KEYS */;
INSERT INTO `reservations` VALUES ('2026-11-23 14:25:34',NULL,'2faf5c6d-b73d-5d51-9393-4b9967cd731e','cd206f34-f223-505f-8bd0-8163469501d2','82ab99cf-5676-5840-be0d-be9847497361','physical:host','pending',1,0);
INSERT INTO `reservations` VALUES ('2026-11-23 14:25:34',NULL,'48d24c0f-b23b-5720-a8db-c7539d598018','b3049c22-95dc-556a-8d57-72ca0e04dfd4','d80888fb-d00b-5513-971b-d37873f143b8','physical:host','pending',0,0);
INSERT INTO `reservations` VALUES ('2026-11-23 14:25:34',NULL,'4bf61d8e-b734-58d4-94df-8d9a5f203393','55b831de-fe8f-58c5-bb1f-77799f72146c','74c9cd4f-69d3-5c0e-bf83-9f531fb8a201','virtual:floatingip','active',0,0);
INSERT INTO `reservations` VALUES ('2026-11-23 14:25:34',NULL,'5b6aa66c-9675-5d52-b004-1012686a6874','112a900d-5733-51a6-8918-34588d7999d0','675631a4-56f6-5320-b694-d0c2761fda0a','physical:host','deleted',0,0);
INSERT INTO `reservations` VALUES ('2026-11-23 14:25:33',NULL,'6a941b5a-cc7d-563d-a5a2-4e7e520fcf7f','438fe270-b29e-5c3f-858c-33e1f07d654d','1b4d63dc-a5e8-515c-ad83-913513a48e55','physical:host','pending',0,0);
INSERT INTO `reservations` VALUES ('2026-11-23 14:25:34',NULL,'7131c8b3-e259-5b66-a0fa-6130c6c725fb','bc99f666-07e0-5008-ac66-a1adf9c27031','98cffeb6-dbca-5b79-bfc3-e38512e35448','physical:host','active',0,0);
INSERT INTO `reservations` VALUES ('2026-11-23 14:25:34',NULL,'84bfabbd-c0f7-5f2f-af0a-ec529b3aace6','e6ad27f0-569f-5939-8388-10de3d26e73b','2880b90c-7d3d-51f0-8003-17fbc4aa31e7','virtual:instance','active',0,0);
INSERT INTO `reservations` VALUES ('2026-11-23 14:25:33',NULL,'8b528a2a-5e82-548e-9b25-b3a89719a9d3','e9cbd459-6a66-5592-88a3-ec1ad02c5d79','38eb2eee-3b32-5bad-bbf5-d4af26139fff','physical:host','active',0,0);
INSERT INTO `reservations` VALUES ('2026-11-23 14:25:34',NULL,'c12ff647-f15d-52d4-b1e0-996798241cdc','abc32d87-674b-56a9-b335-72ec9d5dc34e','aac2e918-f5bd-56b8-ad9c-e7e40e9a0469','virtual:floatingip','pending',0,0);
INSERT INTO `reservations` VALUES ('2026-11-23 14:25:34',NULL,'c2b251e7-b290-5cc2-b952-16b31964408b','047e6230-670d-5c5e-82d4-9de66c857639','f707e27e-9b8f-595a-94c0-b035491dc232','virtual:instance','pending',0,0);
INSERT INTO `reservations` VALUES ('2026-11-23 14:25:34',NULL,'cf571412-b24b-5607-9f5b-17ece99c075f','c74d52a7-aeb4-5f0c-ace8-6a410b1525d2','3cb457e4-6706-5ad7-a5c6-91a8cad88098','physical:host','error',0,0);
INSERT INTO `reservations` VALUES ('2026-11-23 14:25:34',NULL,'eadbc4fd-f4a8-50d4-b9a9-0ad1c0a5432d','a3fa85cc-d7ee-5f94-898b-a466a4f15dc0','60d6f6cd-8bf7-5c35-8ca4-6acada4b2b78','physical:host','pending',0,0);
INSERT INTO `reservations` VALUES ('2026-11-23 14:25:34',NULL,'ec328bfc-2320-5f33-b56d-0b3ba6e340d3','abc32d87-674b-56a9-b335-72ec9d5dc34e','5de01577-7285-502f-b630-db8e0363a8da','physical:host','pending',0,0);
INSERT INTO `reservations` VALUES ('2026-11-23 14:25:34',NULL,'fdb3bf92-eae9-5f04-aacb-60e43b6e6279','574f4681-c39e-5a04-87eb-a533266e760c','ea376804-5217-554b-a3a6-7c5364cdd787','network:port','pending',0,0);
/*!40000 ALTER TABLE `reservations` ENABLE KEYS */;
UNLOCK TABLES;
DROP TABLE IF EXISTS `resource_properties`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `resource_properties` (
  `id` varchar(36) NOT NULL,
  `resource_type` varchar(255) NOT NULL,
  `property_name` varchar(255) NOT NULL,
  `private` tinyint(1) NOT NULL DEFAULT 0,
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `resource_type` (`resource_type`,`property_name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

LOCK TABLES `resource_properties` WRITE;
/*!40000 ALTER TABLE `resource_properties` DISABLE KEYS */;
INSERT INTO `resource_properties` VALUES ('1892b121-75da-47b9-b309-3264585ed978','physical:host','rack',1,'2026-11-23 14:25:33','2026-11-23 14:25:33');
INSERT INTO `resource_properties` VALUES ('4798871a-bfd8-4be4-885e-7e0b290c7d78','physical:host','gpu_count',0,'2026-11-23 14:25:33',NULL);
/*!40000 ALTER TABLE `resource_properties` ENABLE KEYS */;
UNLOCK TABLES;
/*!40103 SET TIME_ZONE=@OLD_TIME_ZONE */;

/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;
/*!40014 SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS */;
/*!40014 SET UNIQUE_CHECKS=@OLD_UNIQUE_CHECKS */;
/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */;
/*!40101 SET CHARACTER_SET_RESULTS=@OLD_CHARACTER_SET_RESULTS */;
/*!40101 SET COLLATION_CONNECTION=@OLD_COLLATION_CONNECTION */;
/*!40111 SET SQL_NOTES=@OLD_SQL_NOTES */;

