SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.computehost_allocations (
    id character varying(36) NOT NULL,
    compute_host_id character varying(36),
    reservation_id character varying(36),
    created_at timestamp without time zone,
    updated_at timestamp without time zone
);
CREATE TABLE public.computehost_extra_capabilities (
    id character varying(36) NOT NULL,
    computehost_id character varying(36),
    property_id character varying(36) NOT NULL,
    capability_value text NOT NULL,
    created_at timestamp without time zone,
    updated_at timestamp without time zone
);
CREATE TABLE public.computehost_reservations (
    id character varying(36) NOT NULL,
    reservation_id character varying(36),
    aggregate_id integer,
    resource_properties text,
    count_range character varying(36),
    hypervisor_properties text,
    before_end character varying(36),
    created_at timestamp without time zone,
    updated_at timestamp without time zone
);
CREATE TABLE public.computehost_resource_inventory (
    id character varying(36) NOT NULL,
    computehost_id character varying(36),
    resource_class character varying(255) NOT NULL,
    total integer NOT NULL,
    reserved integer NOT NULL,
    min_unit integer NOT NULL,
    max_unit integer NOT NULL,
    step_size integer NOT NULL,
    allocation_ratio double precision NOT NULL,
    created_at timestamp without time zone,
    updated_at timestamp without time zone
);
CREATE TABLE public.computehost_trait (
    id character varying(36) NOT NULL,
    computehost_id character varying(36),
    trait character varying(255) NOT NULL,
    created_at timestamp without time zone,
    updated_at timestamp without time zone
);
CREATE TABLE public.computehosts (
    id character varying(36) NOT NULL,
    vcpus integer NOT NULL,
    cpu_info text NOT NULL,
    hypervisor_type text NOT NULL,
    hypervisor_version integer NOT NULL,
    hypervisor_hostname character varying(255),
    service_name character varying(255),
    memory_mb integer NOT NULL,
    local_gb integer NOT NULL,
    status character varying(13),
    availability_zone character varying(255) NOT NULL,
    trust_id character varying(36) NOT NULL,
    reservable boolean DEFAULT true NOT NULL,
    created_at timestamp without time zone,
    updated_at timestamp without time zone
);
CREATE TABLE public.events (
    id character varying(36) NOT NULL,
    lease_id character varying(36),
    event_type character varying(66),
    "time" timestamp without time zone,
    status character varying(13),
    created_at timestamp without time zone,
    updated_at timestamp without time zone
);
CREATE TABLE public.floatingip_allocations (
    id character varying(36) NOT NULL,
    floatingip_id character varying(36),
    reservation_id character varying(36),
    created_at timestamp without time zone,
    updated_at timestamp without time zone
);
CREATE TABLE public.floatingip_reservations (
    id character varying(36) NOT NULL,
    reservation_id character varying(36),
    network_id character varying(255) NOT NULL,
    amount integer NOT NULL,
    created_at timestamp without time zone,
    updated_at timestamp without time zone
);
CREATE TABLE public.floatingips (
    id character varying(36) NOT NULL,
    floating_network_id character varying(255) NOT NULL,
    subnet_id character varying(255) NOT NULL,
    floating_ip_address character varying(255) NOT NULL,
    reservable boolean DEFAULT true NOT NULL,
    created_at timestamp without time zone,
    updated_at timestamp without time zone
);
CREATE TABLE public.instance_reservations (
    id character varying(36) NOT NULL,
    reservation_id character varying(36),
    vcpus integer NOT NULL,
    memory_mb integer NOT NULL,
    disk_gb integer NOT NULL,
    amount integer NOT NULL,
    affinity boolean,
    resource_properties text,
    flavor_id character varying(36),
    aggregate_id integer,
    server_group_id character varying(36),
    created_at timestamp without time zone,
    updated_at timestamp without time zone
);
CREATE TABLE public.leases (
    id character varying(36) NOT NULL,
    name character varying(80) NOT NULL,
    user_id character varying(255),
    project_id character varying(255),
    start_date timestamp without time zone NOT NULL,
    end_date timestamp without time zone NOT NULL,
    trust_id character varying(36),
    status character varying(255),
    degraded boolean DEFAULT false NOT NULL,
    created_at timestamp without time zone,
    updated_at timestamp without time zone
);
CREATE TABLE public.required_floatingips (
    id character varying(36) NOT NULL,
    address character varying(255) NOT NULL,
    floatingip_reservation_id character varying(36),
    created_at timestamp without time zone,
    updated_at timestamp without time zone
);
CREATE TABLE public.reservations (
    id character varying(36) NOT NULL,
    lease_id character varying(36) NOT NULL,
    resource_id character varying(36),
    resource_type character varying(66),
    status character varying(13),
    missing_resources boolean DEFAULT false NOT NULL,
    resources_changed boolean DEFAULT false NOT NULL,
    created_at timestamp without time zone,
    updated_at timestamp without time zone
);
CREATE TABLE public.resource_properties (
    id character varying(36) NOT NULL,
    resource_type character varying(255) NOT NULL,
    property_name character varying(255) NOT NULL,
    private boolean DEFAULT false NOT NULL,
    created_at timestamp without time zone,
    updated_at timestamp without time zone
);
INSERT INTO public.computehost_allocations VALUES ('5cff71c5-386c-5b91-ac31-d3be48978f72', '1', '8b528a2a-5e82-548e-9b25-b3a89719a9d3', '2026-11-23 14:26:27.124435', NULL);
INSERT INTO public.computehost_allocations VALUES ('268b4c94-dda8-5c3d-a548-6052e3a7b72d', '1', '6a941b5a-cc7d-563d-a5a2-4e7e520fcf7f', '2026-11-23 14:26:27.183256', NULL);
INSERT INTO public.computehost_allocations VALUES ('440bac3d-59ae-5e4d-b82c-b6edb1de075f', '2', '6a941b5a-cc7d-563d-a5a2-4e7e520fcf7f', '2026-11-23 14:26:27.198482', NULL);
INSERT INTO public.computehost_allocations VALUES ('0429e978-4923-567d-a541-6b8f93faf548', '3', '84bfabbd-c0f7-5f2f-af0a-ec529b3aace6', '2026-11-23 14:26:27.259132', NULL);
INSERT INTO public.computehost_allocations VALUES ('e0246a50-3bb2-58ac-9f6a-8adc885c7467', '3', '84bfabbd-c0f7-5f2f-af0a-ec529b3aace6', '2026-11-23 14:26:27.269805', NULL);
INSERT INTO public.computehost_allocations VALUES ('01d7d0c0-6980-54fc-814b-8c91e41a3052', 'ff139314-505d-54d8-9a68-0644a9d03c04', '84bfabbd-c0f7-5f2f-af0a-ec529b3aace6', '2026-11-23 14:26:27.285503', NULL);
INSERT INTO public.computehost_allocations VALUES ('a02f2cea-833c-5124-a272-f7428d0cdda3', '3', 'c2b251e7-b290-5cc2-b952-16b31964408b', '2026-11-23 14:26:27.388648', NULL);
INSERT INTO public.computehost_allocations VALUES ('f3c20c40-bd5e-5057-a904-5ad466851ff1', '2', 'ec328bfc-2320-5f33-b56d-0b3ba6e340d3', '2026-11-23 14:26:27.466153', NULL);
INSERT INTO public.computehost_allocations VALUES ('e39cf779-0d7f-5581-85b0-c2501da1bf50', '7', 'cf571412-b24b-5607-9f5b-17ece99c075f', '2026-11-23 14:26:27.80744', NULL);
INSERT INTO public.computehost_allocations VALUES ('f3ee9b15-bd84-5852-a416-36fdf9bd19f7', '3', '2faf5c6d-b73d-5d51-9393-4b9967cd731e', '2026-11-23 14:26:27.850966', NULL);
INSERT INTO public.computehost_allocations VALUES ('35978f62-7f56-59fd-a9d6-7288b006df5c', '3', 'd6c188a6-4059-5de7-b890-eaeeafeaff4f', '2026-11-23 14:26:27.8879', NULL);
INSERT INTO public.computehost_allocations VALUES ('dd9ed347-247c-5d39-be76-998ec7bfbb9e', '3', 'd6c188a6-4059-5de7-b890-eaeeafeaff4f', '2026-11-23 14:26:27.895954', NULL);
INSERT INTO public.computehost_allocations VALUES ('3daa3c86-6a96-552b-bc4b-16c9dd1aa5d5', '2', '7131c8b3-e259-5b66-a0fa-6130c6c725fb', '2026-11-23 14:26:27.952557', NULL);
INSERT INTO public.computehost_allocations VALUES ('89765556-2817-55bc-ad33-c156696e27bb', '2', '48d24c0f-b23b-5720-a8db-c7539d598018', '2026-11-23 14:26:28.021161', NULL);
INSERT INTO public.computehost_allocations VALUES ('597fd1bf-4567-5d8b-af30-71155abec4b6', '5', 'eadbc4fd-f4a8-50d4-b9a9-0ad1c0a5432d', '2026-11-23 14:26:28.059621', NULL);
INSERT INTO public.computehost_extra_capabilities VALUES ('2d578326-84d2-5643-8cca-ab213fd5b496', '1', '2f372264-aced-47c3-a72b-c5f8535ad925', '2', '2026-11-23 14:26:26.462772', NULL);
INSERT INTO public.computehost_extra_capabilities VALUES ('ce9c678e-1048-58b5-94a2-d18ff4595ba6', '1', '03ac2682-4472-413f-beb2-e48979cb7bac', 'r1', '2026-11-23 14:26:26.526134', NULL);
INSERT INTO public.computehost_extra_capabilities VALUES ('efb867eb-8f88-51e6-9d26-9f7f4711b742', '2', '03ac2682-4472-413f-beb2-e48979cb7bac', 'r1', '2026-11-23 14:26:26.590078', NULL);
INSERT INTO public.computehost_extra_capabilities VALUES ('76dd0895-d3f9-56b1-87ea-7ec36e4dbdb4', '3', '03ac2682-4472-413f-beb2-e48979cb7bac', 'r2', '2026-11-23 14:26:26.64649', NULL);
INSERT INTO public.computehost_extra_capabilities VALUES ('92069056-3293-5413-83c8-30c86df09bc2', 'ff139314-505d-54d8-9a68-0644a9d03c04', '03ac2682-4472-413f-beb2-e48979cb7bac', 'r2', '2026-11-23 14:26:26.692093', NULL);
INSERT INTO public.computehost_reservations VALUES ('38eb2eee-3b32-5bad-bbf5-d4af26139fff', '8b528a2a-5e82-548e-9b25-b3a89719a9d3', 7, '[">=", "$gpu_count", "2"]', '1-1', '', 'default', '2026-11-23 14:26:27.088112', NULL);
INSERT INTO public.computehost_reservations VALUES ('1b4d63dc-a5e8-515c-ad83-913513a48e55', '6a941b5a-cc7d-563d-a5a2-4e7e520fcf7f', 7, '', '1-3', '', 'snapshot', '2026-11-23 14:26:27.174116', NULL);
INSERT INTO public.computehost_reservations VALUES ('5de01577-7285-502f-b630-db8e0363a8da', 'ec328bfc-2320-5f33-b56d-0b3ba6e340d3', 7, '', '1-1', '', 'default', '2026-11-23 14:26:27.445671', NULL);
INSERT INTO public.computehost_reservations VALUES ('675631a4-56f6-5320-b694-d0c2761fda0a', '5b6aa66c-9675-5d52-b004-1012686a6874', 7, '', '1-1', '', 'default', '2026-11-23 14:26:27.730622', NULL);
INSERT INTO public.computehost_reservations VALUES ('3cb457e4-6706-5ad7-a5c6-91a8cad88098', 'cf571412-b24b-5607-9f5b-17ece99c075f', 7, '', '1-1', '', 'default', '2026-11-23 14:26:27.791456', NULL);
INSERT INTO public.computehost_reservations VALUES ('82ab99cf-5676-5840-be0d-be9847497361', '2faf5c6d-b73d-5d51-9393-4b9967cd731e', 7, '', '2-2', '', 'default', '2026-11-23 14:26:27.839655', NULL);
INSERT INTO public.computehost_reservations VALUES ('98cffeb6-dbca-5b79-bfc3-e38512e35448', '7131c8b3-e259-5b66-a0fa-6130c6c725fb', 7, '', '1-1', '', 'default', '2026-11-23 14:26:27.948958', NULL);
INSERT INTO public.computehost_reservations VALUES ('d80888fb-d00b-5513-971b-d37873f143b8', '48d24c0f-b23b-5720-a8db-c7539d598018', 7, '', '1-1', '', 'default', '2026-11-23 14:26:28.005198', NULL);
INSERT INTO public.computehost_reservations VALUES ('60d6f6cd-8bf7-5c35-8ca4-6acada4b2b78', 'eadbc4fd-f4a8-50d4-b9a9-0ad1c0a5432d', 7, '', '1-1', '', 'default', '2026-11-23 14:26:28.051731', NULL);
INSERT INTO public.computehost_resource_inventory VALUES ('884dd17d-bd76-5847-9dc5-2ad770af8af9', '3', 'CUSTOM_GPU', 4, 0, 1, 4, 1, 1, '2026-11-23 14:26:26.801472', NULL);
INSERT INTO public.computehost_trait VALUES ('5e944503-7aea-57e6-825b-c80baedfa1df', '3', 'CUSTOM_FAST', '2026-11-23 14:26:26.810609', NULL);
INSERT INTO public.computehosts VALUES ('1', 16, '{"arch": "x86_64"}', 'QEMU', 7002000, 'compute-1.example', 'compute-1', 32768, 500, NULL, 'nova', 'afd304af-8c49-58e4-ab5a-bdc4fc8413c1', true, '2029-12-22 12:00:00', NULL);
INSERT INTO public.computehosts VALUES ('2', 16, '{"arch": "x86_64"}', 'QEMU', 7002000, 'compute-2.example', 'compute-2', 32768, 500, NULL, 'nova', 'afd304af-8c49-58e4-ab5a-bdc4fc8413c1', true, '2029-12-22 12:00:00', NULL);
INSERT INTO public.computehosts VALUES ('3', 16, '{"arch": "x86_64"}', 'QEMU', 7002000, 'compute-3.example', 'compute-3', 32768, 500, NULL, 'nova', 'afd304af-8c49-58e4-ab5a-bdc4fc8413c1', true, '2029-12-22 12:00:00', NULL);
INSERT INTO public.computehosts VALUES ('ff139314-505d-54d8-9a68-0644a9d03c04', 16, '{"arch": "x86_64"}', 'QEMU', 7002000, 'compute-4.example', 'compute-4', 32768, 500, NULL, 'nova', 'afd304af-8c49-58e4-ab5a-bdc4fc8413c1', true, '2029-12-22 12:00:00', NULL);
INSERT INTO public.computehosts VALUES ('5', 16, '{"arch": "x86_64"}', 'QEMU', 7002000, 'vanished.example', 'vanished', 32768, 500, NULL, 'nova', 'afd304af-8c49-58e4-ab5a-bdc4fc8413c1', true, '2029-12-22 12:00:00', NULL);
INSERT INTO public.computehosts VALUES ('6', 16, '{"arch": "x86_64"}', 'QEMU', 7002000, 'compute-6.example', 'compute-6', 32768, 500, NULL, 'nova', 'afd304af-8c49-58e4-ab5a-bdc4fc8413c1', false, '2029-12-22 12:00:00', NULL);
INSERT INTO public.computehosts VALUES ('7', 16, '{"arch": "x86_64"}', 'QEMU', 7002000, 'compute-7.example', 'compute-7', 32768, 500, NULL, 'nova', 'afd304af-8c49-58e4-ab5a-bdc4fc8413c1', true, '2029-12-22 12:00:00', NULL);
INSERT INTO public.events VALUES ('fac0c21b-f503-5238-80df-2f371bd68bd9', 'e9cbd459-6a66-5592-88a3-ec1ad02c5d79', 'start_lease', '2030-01-01 10:00:00', 'DONE', '2026-11-23 14:26:26.90062', NULL);
INSERT INTO public.events VALUES ('72c92bac-3795-5cd2-a077-8b8e25867732', 'e9cbd459-6a66-5592-88a3-ec1ad02c5d79', 'end_lease', '2030-01-01 15:00:00', 'UNDONE', '2026-11-23 14:26:26.907792', NULL);
INSERT INTO public.events VALUES ('0887e524-343e-5870-9cc7-bd2df18c2a98', 'e9cbd459-6a66-5592-88a3-ec1ad02c5d79', 'before_end_lease', '2030-01-01 14:00:00', 'UNDONE', '2026-11-23 14:26:26.909723', NULL);
INSERT INTO public.events VALUES ('31f69880-e3b7-56f3-bb18-24f1da57f148', '438fe270-b29e-5c3f-858c-33e1f07d654d', 'start_lease', '2030-01-01 15:00:00', 'UNDONE', '2026-11-23 14:26:27.153806', NULL);
INSERT INTO public.events VALUES ('b47d233d-8615-5b10-b09b-360059b69cbf', '438fe270-b29e-5c3f-858c-33e1f07d654d', 'end_lease', '2030-01-01 18:00:00', 'UNDONE', '2026-11-23 14:26:27.154517', NULL);
INSERT INTO public.events VALUES ('1605b7fb-dbd7-5e37-8869-d21b4d54f86d', '438fe270-b29e-5c3f-858c-33e1f07d654d', 'before_end_lease', '2030-01-01 17:00:00', 'UNDONE', '2026-11-23 14:26:27.157311', NULL);
INSERT INTO public.events VALUES ('85d68bc7-811d-5e1b-8af1-36125cf2b8b5', 'e6ad27f0-569f-5939-8388-10de3d26e73b', 'start_lease', '2030-01-01 11:00:00', 'DONE', '2026-11-23 14:26:27.217128', NULL);
INSERT INTO public.events VALUES ('7057d8fc-9a46-54d9-b2d7-c4146a1e1c26', 'e6ad27f0-569f-5939-8388-10de3d26e73b', 'end_lease', '2030-01-01 17:00:00', 'UNDONE', '2026-11-23 14:26:27.220501', NULL);
INSERT INTO public.events VALUES ('d8015425-db42-5c43-9f41-00b7f728ce41', 'e6ad27f0-569f-5939-8388-10de3d26e73b', 'before_end_lease', '2030-01-01 16:00:00', 'UNDONE', '2026-11-23 14:26:27.223748', NULL);
INSERT INTO public.events VALUES ('b916e83d-010a-5717-bc26-39b6efcdbd36', '047e6230-670d-5c5e-82d4-9de66c857639', 'start_lease', '2030-01-01 17:00:00', 'UNDONE', '2026-11-23 14:26:27.309467', NULL);
INSERT INTO public.events VALUES ('df228c90-55f1-59b9-9eab-e42392a1be13', '047e6230-670d-5c5e-82d4-9de66c857639', 'end_lease', '2030-01-01 20:00:00', 'UNDONE', '2026-11-23 14:26:27.311577', NULL);
INSERT INTO public.events VALUES ('441161e6-ea3c-5839-b335-2a00e53f2367', '047e6230-670d-5c5e-82d4-9de66c857639', 'before_end_lease', '2030-01-01 19:00:00', 'UNDONE', '2026-11-23 14:26:27.320775', NULL);
INSERT INTO public.events VALUES ('4d25b151-8a39-5643-865d-a151e8b9161e', 'abc32d87-674b-56a9-b335-72ec9d5dc34e', 'start_lease', '2030-01-01 22:00:00', 'UNDONE', '2026-11-23 14:26:27.417495', NULL);
INSERT INTO public.events VALUES ('a781c09b-1cc3-518f-bb69-075e815a245a', 'abc32d87-674b-56a9-b335-72ec9d5dc34e', 'end_lease', '2030-01-02 00:00:00', 'UNDONE', '2026-11-23 14:26:27.41933', NULL);
INSERT INTO public.events VALUES ('fe24036b-e189-57cb-a18e-42dcad04970e', 'abc32d87-674b-56a9-b335-72ec9d5dc34e', 'before_end_lease', '2030-01-01 23:00:00', 'UNDONE', '2026-11-23 14:26:27.420098', NULL);
INSERT INTO public.events VALUES ('450c93c4-1a6f-55bc-b513-d9dc97f7aa07', '55b831de-fe8f-58c5-bb1f-77799f72146c', 'start_lease', '2030-01-01 11:00:00', 'DONE', '2026-11-23 14:26:27.569676', NULL);
INSERT INTO public.events VALUES ('c8a7db8a-9c3a-56f5-93ff-445d7caf914b', '55b831de-fe8f-58c5-bb1f-77799f72146c', 'end_lease', '2030-01-01 14:00:00', 'UNDONE', '2026-11-23 14:26:27.582528', NULL);
INSERT INTO public.events VALUES ('d68a04a1-43fc-556e-bf21-73b64102d09c', '55b831de-fe8f-58c5-bb1f-77799f72146c', 'before_end_lease', '2030-01-01 13:00:00', 'UNDONE', '2026-11-23 14:26:27.583311', NULL);
INSERT INTO public.events VALUES ('d13451da-ed93-5b67-9eca-006749732fa4', '112a900d-5733-51a6-8918-34588d7999d0', 'start_lease', '2029-12-31 06:00:00', 'DONE', '2026-11-23 14:26:27.685285', NULL);
INSERT INTO public.events VALUES ('93973525-e69f-577a-85f1-058d7addf63d', '112a900d-5733-51a6-8918-34588d7999d0', 'end_lease', '2029-12-31 16:00:00', 'DONE', '2026-11-23 14:26:27.687108', NULL);
INSERT INTO public.events VALUES ('a41cfd13-b5c4-5b8d-a47b-fbc8717db485', '112a900d-5733-51a6-8918-34588d7999d0', 'before_end_lease', '2029-12-31 15:00:00', 'DONE', '2026-11-23 14:26:27.687782', NULL);
INSERT INTO public.events VALUES ('22728f82-20f2-555d-986f-c005ce1d73c9', 'c74d52a7-aeb4-5f0c-ace8-6a410b1525d2', 'start_lease', '2030-01-01 11:00:00', 'ERROR', '2026-11-23 14:26:27.759439', NULL);
INSERT INTO public.events VALUES ('0ddd5b70-6003-5c0f-9cf4-b063fd140f47', 'c74d52a7-aeb4-5f0c-ace8-6a410b1525d2', 'end_lease', '2030-01-01 16:00:00', 'UNDONE', '2026-11-23 14:26:27.760033', NULL);
INSERT INTO public.events VALUES ('b0015cae-ec8c-504e-a14b-0fb0de9b875e', 'c74d52a7-aeb4-5f0c-ace8-6a410b1525d2', 'before_end_lease', '2030-01-01 15:00:00', 'UNDONE', '2026-11-23 14:26:27.7605', NULL);
INSERT INTO public.events VALUES ('ec0788b7-4f9e-52c4-bb62-6f39a6d8caa9', 'cd206f34-f223-505f-8bd0-8163469501d2', 'start_lease', '2030-01-02 08:00:00', 'UNDONE', '2026-11-23 14:26:27.821505', NULL);
INSERT INTO public.events VALUES ('d0eb2e0e-eee1-5038-ad5d-2b67cb7c0b39', 'cd206f34-f223-505f-8bd0-8163469501d2', 'end_lease', '2030-01-02 12:00:00', 'UNDONE', '2026-11-23 14:26:27.827512', NULL);
INSERT INTO public.events VALUES ('53cdd1d8-13e8-5141-a0ac-73b499c36678', 'cd206f34-f223-505f-8bd0-8163469501d2', 'before_end_lease', '2030-01-02 11:00:00', 'UNDONE', '2026-11-23 14:26:27.828273', NULL);
INSERT INTO public.events VALUES ('fdee933b-937e-55ec-abb6-6b6048df5206', '57494e92-8fe8-53e6-9c0d-cfb1a4dc73e9', 'start_lease', '2030-01-02 18:00:00', 'UNDONE', '2026-11-23 14:26:27.859602', NULL);
INSERT INTO public.events VALUES ('3ffd6d41-1549-5fa6-89a1-bee09a12b1a4', '57494e92-8fe8-53e6-9c0d-cfb1a4dc73e9', 'end_lease', '2030-01-02 21:00:00', 'UNDONE', '2026-11-23 14:26:27.86051', NULL);
INSERT INTO public.events VALUES ('9163de3e-d240-5b84-8316-07f0713abd89', '57494e92-8fe8-53e6-9c0d-cfb1a4dc73e9', 'before_end_lease', '2030-01-02 20:00:00', 'UNDONE', '2026-11-23 14:26:27.861033', NULL);
INSERT INTO public.events VALUES ('fc7a55a0-dfb9-5b04-9617-dd7ad76f649e', 'bc99f666-07e0-5008-ac66-a1adf9c27031', 'start_lease', '2030-01-03 04:00:00', 'UNDONE', '2026-11-23 14:26:27.926407', NULL);
INSERT INTO public.events VALUES ('66cedb58-014c-5594-beb8-51703a83d6b7', 'bc99f666-07e0-5008-ac66-a1adf9c27031', 'end_lease', '2030-01-03 06:00:00', 'UNDONE', '2026-11-23 14:26:27.932325', NULL);
INSERT INTO public.events VALUES ('d5ecef20-7e14-59e9-a65b-632c409c1f24', 'bc99f666-07e0-5008-ac66-a1adf9c27031', 'before_end_lease', '2030-01-03 05:00:00', 'UNDONE', '2026-11-23 14:26:27.933067', NULL);
INSERT INTO public.events VALUES ('bda53d42-a7f7-523a-9eaf-2c70f683c7b4', '574f4681-c39e-5a04-87eb-a533266e760c', 'start_lease', '2030-01-03 04:00:00', 'UNDONE', '2026-11-23 14:26:27.960027', NULL);
INSERT INTO public.events VALUES ('2c7fe1f5-a7ea-569f-a1b1-bb7ac8cf069c', '574f4681-c39e-5a04-87eb-a533266e760c', 'end_lease', '2030-01-03 06:00:00', 'UNDONE', '2026-11-23 14:26:27.961853', NULL);
INSERT INTO public.events VALUES ('0d541ad5-892c-5559-b354-6ab113d366f1', '574f4681-c39e-5a04-87eb-a533266e760c', 'before_end_lease', '2030-01-03 05:00:00', 'UNDONE', '2026-11-23 14:26:27.96483', NULL);
INSERT INTO public.events VALUES ('559eeb7d-6b93-5c98-b971-6fc1da250408', 'b3049c22-95dc-556a-8d57-72ca0e04dfd4', 'start_lease', '2030-01-01 16:00:00', 'UNDONE', '2026-11-23 14:26:27.98562', NULL);
INSERT INTO public.events VALUES ('29151cc6-87f5-5aad-bf95-10a5e4709011', 'b3049c22-95dc-556a-8d57-72ca0e04dfd4', 'end_lease', '2030-01-01 17:00:00', 'UNDONE', '2026-11-23 14:26:27.986454', NULL);
INSERT INTO public.events VALUES ('ad2bb837-1316-513a-8b50-ed2abcf7e0cc', 'a3fa85cc-d7ee-5f94-898b-a466a4f15dc0', 'start_lease', '2030-01-03 14:00:00', 'UNDONE', '2026-11-23 14:26:28.035714', NULL);
INSERT INTO public.events VALUES ('18f4c3c7-89cc-52a3-91ec-af32936a7ede', 'a3fa85cc-d7ee-5f94-898b-a466a4f15dc0', 'end_lease', '2030-01-03 16:00:00', 'UNDONE', '2026-11-23 14:26:28.036471', NULL);
INSERT INTO public.events VALUES ('54f019a2-0036-59e6-90a2-ebea3d5e49fe', 'a3fa85cc-d7ee-5f94-898b-a466a4f15dc0', 'before_end_lease', '2030-01-03 15:00:00', 'UNDONE', '2026-11-23 14:26:28.037166', NULL);
INSERT INTO public.floatingip_allocations VALUES ('3bc47770-a0ca-59df-be58-78fc3de603a0', '52b86a21-4a53-530e-a236-8fbe4c43d647', 'c12ff647-f15d-52d4-b1e0-996798241cdc', '2026-11-23 14:26:27.531793', NULL);
INSERT INTO public.floatingip_allocations VALUES ('e2592723-5007-5284-b523-e5ac0ffdf053', 'c34d52a1-1920-5e49-9271-504e232e3c4f', 'c12ff647-f15d-52d4-b1e0-996798241cdc', '2026-11-23 14:26:27.541398', NULL);
INSERT INTO public.floatingip_allocations VALUES ('c92cc195-58e7-5924-a22a-d02e69f00eed', 'cc34b5f8-7189-506d-8a7c-c9542b165e91', '4bf61d8e-b734-58d4-94df-8d9a5f203393', '2026-11-23 14:26:27.641672', NULL);
INSERT INTO public.floatingip_reservations VALUES ('aac2e918-f5bd-56b8-ad9c-e7e40e9a0469', 'c12ff647-f15d-52d4-b1e0-996798241cdc', 'external-network', 2, '2026-11-23 14:26:27.479182', NULL);
INSERT INTO public.floatingip_reservations VALUES ('74c9cd4f-69d3-5c0e-bf83-9f531fb8a201', '4bf61d8e-b734-58d4-94df-8d9a5f203393', 'external-network', 1, '2026-11-23 14:26:27.616596', NULL);
INSERT INTO public.floatingips VALUES ('52b86a21-4a53-530e-a236-8fbe4c43d647', 'external-network', 'external-subnet', '203.0.113.10', true, '2026-11-23 14:26:26.83157', NULL);
INSERT INTO public.floatingips VALUES ('c34d52a1-1920-5e49-9271-504e232e3c4f', 'external-network', 'external-subnet', '203.0.113.11', true, '2026-11-23 14:26:26.849368', NULL);
INSERT INTO public.floatingips VALUES ('cc34b5f8-7189-506d-8a7c-c9542b165e91', 'external-network', 'external-subnet', '203.0.113.12', true, '2026-11-23 14:26:26.863301', NULL);
INSERT INTO public.instance_reservations VALUES ('2880b90c-7d3d-51f0-8003-17fbc4aa31e7', '84bfabbd-c0f7-5f2f-af0a-ec529b3aace6', 2, 4096, 20, 3, NULL, '', '84bfabbd-c0f7-5f2f-af0a-ec529b3aace6', 8, NULL, '2026-11-23 14:26:27.236539', NULL);
INSERT INTO public.instance_reservations VALUES ('f707e27e-9b8f-595a-94c0-b035491dc232', 'c2b251e7-b290-5cc2-b952-16b31964408b', 2, 4096, 20, 1, false, '', 'c2b251e7-b290-5cc2-b952-16b31964408b', 8, '09cfccb0-5a71-5b96-bc40-22fffa81a621', '2026-11-23 14:26:27.362929', NULL);
INSERT INTO public.instance_reservations VALUES ('78b6eb17-14a2-515f-807e-7efadeab72d3', 'd6c188a6-4059-5de7-b890-eaeeafeaff4f', 2, 4096, 20, 2, NULL, '{"id": "f1", "name": "gpu", "vcpus": 4, "ram": 8192, "disk": 40, "extra_specs": {"resources:CUSTOM_GPU": "1", "trait:CUSTOM_FAST": "required"}}', 'd6c188a6-4059-5de7-b890-eaeeafeaff4f', 8, NULL, '2026-11-23 14:26:27.877608', NULL);
INSERT INTO public.leases VALUES ('e9cbd459-6a66-5592-88a3-ec1ad02c5d79', 'active-hosts', 'user-of-leases', 'project-of-leases', '2030-01-01 10:00:00', '2030-01-01 15:00:00', 'afd304af-8c49-58e4-ab5a-bdc4fc8413c1', 'ACTIVE', false, '2029-12-30 12:00:00', NULL);
INSERT INTO public.leases VALUES ('438fe270-b29e-5c3f-858c-33e1f07d654d', 'next-hosts', 'user-of-leases', 'project-of-leases', '2030-01-01 15:00:00', '2030-01-01 18:00:00', 'afd304af-8c49-58e4-ab5a-bdc4fc8413c1', 'PENDING', false, '2029-12-30 12:00:00', NULL);
INSERT INTO public.leases VALUES ('e6ad27f0-569f-5939-8388-10de3d26e73b', 'active-servers', 'user-of-leases', 'project-of-leases', '2030-01-01 11:00:00', '2030-01-01 17:00:00', 'afd304af-8c49-58e4-ab5a-bdc4fc8413c1', 'ACTIVE', false, '2029-12-30 12:00:00', NULL);
INSERT INTO public.leases VALUES ('047e6230-670d-5c5e-82d4-9de66c857639', 'next-servers', 'user-of-leases', 'project-of-leases', '2030-01-01 17:00:00', '2030-01-01 20:00:00', 'afd304af-8c49-58e4-ab5a-bdc4fc8413c1', 'PENDING', false, '2029-12-30 12:00:00', NULL);
INSERT INTO public.leases VALUES ('abc32d87-674b-56a9-b335-72ec9d5dc34e', 'two-kinds', 'user-of-leases', 'project-of-leases', '2030-01-01 22:00:00', '2030-01-02 00:00:00', 'afd304af-8c49-58e4-ab5a-bdc4fc8413c1', 'PENDING', false, '2029-12-30 12:00:00', NULL);
INSERT INTO public.leases VALUES ('55b831de-fe8f-58c5-bb1f-77799f72146c', 'active-address', 'user-of-leases', 'project-of-leases', '2030-01-01 11:00:00', '2030-01-01 14:00:00', 'afd304af-8c49-58e4-ab5a-bdc4fc8413c1', 'ACTIVE', false, '2029-12-30 12:00:00', NULL);
INSERT INTO public.leases VALUES ('112a900d-5733-51a6-8918-34588d7999d0', 'over', 'user-of-leases', 'project-of-leases', '2029-12-31 06:00:00', '2029-12-31 16:00:00', 'afd304af-8c49-58e4-ab5a-bdc4fc8413c1', 'TERMINATED', false, '2029-12-30 12:00:00', NULL);
INSERT INTO public.leases VALUES ('c74d52a7-aeb4-5f0c-ace8-6a410b1525d2', 'failed-start', 'user-of-leases', 'project-of-leases', '2030-01-01 11:00:00', '2030-01-01 16:00:00', 'afd304af-8c49-58e4-ab5a-bdc4fc8413c1', 'ERROR', false, '2029-12-30 12:00:00', NULL);
INSERT INTO public.leases VALUES ('cd206f34-f223-505f-8bd0-8163469501d2', 'short-of-hosts', 'user-of-leases', 'project-of-leases', '2030-01-02 08:00:00', '2030-01-02 12:00:00', 'afd304af-8c49-58e4-ab5a-bdc4fc8413c1', 'PENDING', true, '2029-12-30 12:00:00', NULL);
INSERT INTO public.leases VALUES ('57494e92-8fe8-53e6-9c0d-cfb1a4dc73e9', 'next-flavors', 'user-of-leases', 'project-of-leases', '2030-01-02 18:00:00', '2030-01-02 21:00:00', 'afd304af-8c49-58e4-ab5a-bdc4fc8413c1', 'PENDING', false, '2029-12-30 12:00:00', NULL);
INSERT INTO public.leases VALUES ('bc99f666-07e0-5008-ac66-a1adf9c27031', 'being-updated', 'user-of-leases', 'project-of-leases', '2030-01-03 04:00:00', '2030-01-03 06:00:00', 'afd304af-8c49-58e4-ab5a-bdc4fc8413c1', 'UPDATING', false, '2029-12-30 12:00:00', NULL);
INSERT INTO public.leases VALUES ('574f4681-c39e-5a04-87eb-a533266e760c', 'of-another-plugin', 'user-of-leases', 'project-of-leases', '2030-01-03 04:00:00', '2030-01-03 06:00:00', 'afd304af-8c49-58e4-ab5a-bdc4fc8413c1', 'PENDING', false, '2029-12-30 12:00:00', NULL);
INSERT INTO public.leases VALUES ('b3049c22-95dc-556a-8d57-72ca0e04dfd4', 'overlapping', 'user-of-leases', 'project-of-leases', '2030-01-01 16:00:00', '2030-01-01 17:00:00', 'afd304af-8c49-58e4-ab5a-bdc4fc8413c1', 'PENDING', false, '2029-12-31 12:00:00', NULL);
INSERT INTO public.leases VALUES ('a3fa85cc-d7ee-5f94-898b-a466a4f15dc0', 'on-a-vanished-host', 'user-of-leases', 'project-of-leases', '2030-01-03 14:00:00', '2030-01-03 16:00:00', 'afd304af-8c49-58e4-ab5a-bdc4fc8413c1', 'PENDING', false, '2029-12-30 12:00:00', NULL);
INSERT INTO public.required_floatingips VALUES ('5f414716-a60f-5456-967b-86703dbf4767', '203.0.113.11', 'aac2e918-f5bd-56b8-ad9c-e7e40e9a0469', '2026-11-23 14:26:27.507411', NULL);
INSERT INTO public.reservations VALUES ('8b528a2a-5e82-548e-9b25-b3a89719a9d3', 'e9cbd459-6a66-5592-88a3-ec1ad02c5d79', '38eb2eee-3b32-5bad-bbf5-d4af26139fff', 'physical:host', 'active', false, false, '2026-11-23 14:26:26.89866', NULL);
INSERT INTO public.reservations VALUES ('6a941b5a-cc7d-563d-a5a2-4e7e520fcf7f', '438fe270-b29e-5c3f-858c-33e1f07d654d', '1b4d63dc-a5e8-515c-ad83-913513a48e55', 'physical:host', 'pending', false, false, '2026-11-23 14:26:27.153028', NULL);
INSERT INTO public.reservations VALUES ('84bfabbd-c0f7-5f2f-af0a-ec529b3aace6', 'e6ad27f0-569f-5939-8388-10de3d26e73b', '2880b90c-7d3d-51f0-8003-17fbc4aa31e7', 'virtual:instance', 'active', false, false, '2026-11-23 14:26:27.215233', NULL);
INSERT INTO public.reservations VALUES ('c2b251e7-b290-5cc2-b952-16b31964408b', '047e6230-670d-5c5e-82d4-9de66c857639', 'f707e27e-9b8f-595a-94c0-b035491dc232', 'virtual:instance', 'pending', false, false, '2026-11-23 14:26:27.308529', NULL);
INSERT INTO public.reservations VALUES ('ec328bfc-2320-5f33-b56d-0b3ba6e340d3', 'abc32d87-674b-56a9-b335-72ec9d5dc34e', '5de01577-7285-502f-b630-db8e0363a8da', 'physical:host', 'pending', false, false, '2026-11-23 14:26:27.406065', NULL);
INSERT INTO public.reservations VALUES ('c12ff647-f15d-52d4-b1e0-996798241cdc', 'abc32d87-674b-56a9-b335-72ec9d5dc34e', 'aac2e918-f5bd-56b8-ad9c-e7e40e9a0469', 'virtual:floatingip', 'pending', false, false, '2026-11-23 14:26:27.410908', NULL);
INSERT INTO public.reservations VALUES ('4bf61d8e-b734-58d4-94df-8d9a5f203393', '55b831de-fe8f-58c5-bb1f-77799f72146c', '74c9cd4f-69d3-5c0e-bf83-9f531fb8a201', 'virtual:floatingip', 'active', false, false, '2026-11-23 14:26:27.568848', NULL);
INSERT INTO public.reservations VALUES ('5b6aa66c-9675-5d52-b004-1012686a6874', '112a900d-5733-51a6-8918-34588d7999d0', '675631a4-56f6-5320-b694-d0c2761fda0a', 'physical:host', 'deleted', false, false, '2026-11-23 14:26:27.681909', NULL);
INSERT INTO public.reservations VALUES ('cf571412-b24b-5607-9f5b-17ece99c075f', 'c74d52a7-aeb4-5f0c-ace8-6a410b1525d2', '3cb457e4-6706-5ad7-a5c6-91a8cad88098', 'physical:host', 'error', false, false, '2026-11-23 14:26:27.756023', NULL);
INSERT INTO public.reservations VALUES ('2faf5c6d-b73d-5d51-9393-4b9967cd731e', 'cd206f34-f223-505f-8bd0-8163469501d2', '82ab99cf-5676-5840-be0d-be9847497361', 'physical:host', 'pending', true, false, '2026-11-23 14:26:27.816657', NULL);
INSERT INTO public.reservations VALUES ('d6c188a6-4059-5de7-b890-eaeeafeaff4f', '57494e92-8fe8-53e6-9c0d-cfb1a4dc73e9', '78b6eb17-14a2-515f-807e-7efadeab72d3', 'flavor:instance', 'pending', false, false, '2026-11-23 14:26:27.855115', NULL);
INSERT INTO public.reservations VALUES ('7131c8b3-e259-5b66-a0fa-6130c6c725fb', 'bc99f666-07e0-5008-ac66-a1adf9c27031', '98cffeb6-dbca-5b79-bfc3-e38512e35448', 'physical:host', 'active', false, false, '2026-11-23 14:26:27.924477', NULL);
INSERT INTO public.reservations VALUES ('fdb3bf92-eae9-5f04-aacb-60e43b6e6279', '574f4681-c39e-5a04-87eb-a533266e760c', 'ea376804-5217-554b-a3a6-7c5364cdd787', 'network:port', 'pending', false, false, '2026-11-23 14:26:27.957303', NULL);
INSERT INTO public.reservations VALUES ('48d24c0f-b23b-5720-a8db-c7539d598018', 'b3049c22-95dc-556a-8d57-72ca0e04dfd4', 'd80888fb-d00b-5513-971b-d37873f143b8', 'physical:host', 'pending', false, false, '2026-11-23 14:26:27.984933', NULL);
INSERT INTO public.reservations VALUES ('eadbc4fd-f4a8-50d4-b9a9-0ad1c0a5432d', 'a3fa85cc-d7ee-5f94-898b-a466a4f15dc0', '60d6f6cd-8bf7-5c35-8ca4-6acada4b2b78', 'physical:host', 'pending', false, false, '2026-11-23 14:26:28.031934', NULL);
INSERT INTO public.resource_properties VALUES ('2f372264-aced-47c3-a72b-c5f8535ad925', 'physical:host', 'gpu_count', false, '2026-11-23 14:26:26.440111', NULL);
INSERT INTO public.resource_properties VALUES ('03ac2682-4472-413f-beb2-e48979cb7bac', 'physical:host', 'rack', true, '2026-11-23 14:26:26.503348', '2026-11-23 14:26:26.784433');
ALTER TABLE ONLY public.computehost_allocations
    ADD CONSTRAINT computehost_allocations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.computehost_extra_capabilities
    ADD CONSTRAINT computehost_extra_capabilities_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.computehost_reservations
    ADD CONSTRAINT computehost_reservations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.computehost_resource_inventory
    ADD CONSTRAINT computehost_resource_inventory_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.computehost_trait
    ADD CONSTRAINT computehost_trait_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.computehosts
    ADD CONSTRAINT computehosts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.floatingip_allocations
    ADD CONSTRAINT floatingip_allocations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.floatingip_reservations
    ADD CONSTRAINT floatingip_reservations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.floatingips
    ADD CONSTRAINT floatingips_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.floatingips
    ADD CONSTRAINT floatingips_subnet_id_floating_ip_address_key UNIQUE (subnet_id, floating_ip_address);
ALTER TABLE ONLY public.instance_reservations
    ADD CONSTRAINT instance_reservations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.required_floatingips
    ADD CONSTRAINT required_floatingips_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.reservations
    ADD CONSTRAINT reservations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.resource_properties
    ADD CONSTRAINT resource_properties_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.resource_properties
    ADD CONSTRAINT resource_properties_resource_type_property_name_key UNIQUE (resource_type, property_name);
ALTER TABLE ONLY public.computehost_allocations
    ADD CONSTRAINT computehost_allocations_compute_host_id_fkey FOREIGN KEY (compute_host_id) REFERENCES public.computehosts(id);
ALTER TABLE ONLY public.computehost_allocations
    ADD CONSTRAINT computehost_allocations_reservation_id_fkey FOREIGN KEY (reservation_id) REFERENCES public.reservations(id);
ALTER TABLE ONLY public.computehost_extra_capabilities
    ADD CONSTRAINT computehost_extra_capabilities_computehost_id_fkey FOREIGN KEY (computehost_id) REFERENCES public.computehosts(id);
ALTER TABLE ONLY public.computehost_extra_capabilities
    ADD CONSTRAINT computehost_extra_capabilities_property_id_fkey FOREIGN KEY (property_id) REFERENCES public.resource_properties(id);
ALTER TABLE ONLY public.computehost_reservations
    ADD CONSTRAINT computehost_reservations_reservation_id_fkey FOREIGN KEY (reservation_id) REFERENCES public.reservations(id);
ALTER TABLE ONLY public.computehost_resource_inventory
    ADD CONSTRAINT computehost_resource_inventory_computehost_id_fkey FOREIGN KEY (computehost_id) REFERENCES public.computehosts(id);
ALTER TABLE ONLY public.computehost_trait
    ADD CONSTRAINT computehost_trait_computehost_id_fkey FOREIGN KEY (computehost_id) REFERENCES public.computehosts(id);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_lease_id_fkey FOREIGN KEY (lease_id) REFERENCES public.leases(id);
ALTER TABLE ONLY public.floatingip_allocations
    ADD CONSTRAINT floatingip_allocations_floatingip_id_fkey FOREIGN KEY (floatingip_id) REFERENCES public.floatingips(id);
ALTER TABLE ONLY public.floatingip_allocations
    ADD CONSTRAINT floatingip_allocations_reservation_id_fkey FOREIGN KEY (reservation_id) REFERENCES public.reservations(id);
ALTER TABLE ONLY public.floatingip_reservations
    ADD CONSTRAINT floatingip_reservations_reservation_id_fkey FOREIGN KEY (reservation_id) REFERENCES public.reservations(id);
ALTER TABLE ONLY public.instance_reservations
    ADD CONSTRAINT instance_reservations_reservation_id_fkey FOREIGN KEY (reservation_id) REFERENCES public.reservations(id);
ALTER TABLE ONLY public.required_floatingips
    ADD CONSTRAINT required_floatingips_floatingip_reservation_id_fkey FOREIGN KEY (floatingip_reservation_id) REFERENCES public.floatingip_reservations(id);
ALTER TABLE ONLY public.reservations
    ADD CONSTRAINT reservations_lease_id_fkey FOREIGN KEY (lease_id) REFERENCES public.leases(id);
