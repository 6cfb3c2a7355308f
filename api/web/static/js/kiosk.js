// A calendar on a wall: nothing around it.
document.documentElement.classList.add("kiosk");
