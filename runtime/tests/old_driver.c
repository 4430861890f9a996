/* A driver whose functions all say that there is no device. FUNCTIONS lists them. */
#define FUNCTION(name) int name(void) { return 100; }
FUNCTIONS
