/* An NVRTC of another version: says VERSION_MAJOR.VERSION_MINOR, knows up to sm_90, and compiles nothing. */
#include <stddef.h>

static const int KNOWN[] = {52, 70, 80, 90};
enum { COUNT = sizeof KNOWN / sizeof *KNOWN, FAILED = 11 };

int nvrtcVersion(int *major, int *minor) {
    *major = VERSION_MAJOR;
    *minor = VERSION_MINOR;
    return 0;
}

int nvrtcGetNumSupportedArchs(int *count) {
    *count = COUNT;
    return 0;
}

int nvrtcGetSupportedArchs(int *archs) {
    for (int i = 0; i < COUNT; i++) archs[i] = KNOWN[i];
    return 0;
}

const char *nvrtcGetErrorString(int result) { return result ? "refused by the test" : "success"; }

int nvrtcCreateProgram(void **program, const char *source, const char *name, int headers, const char *const *texts,
                       const char *const *names) {
    (void)program, (void)source, (void)name, (void)headers, (void)texts, (void)names;
    return FAILED;
}

int nvrtcCompileProgram(void *program, int count, const char *const *options) {
    (void)program, (void)count, (void)options;
    return FAILED;
}

int nvrtcGetProgramLogSize(void *program, size_t *size) { return (void)program, (void)size, FAILED; }
int nvrtcGetProgramLog(void *program, char *log) { return (void)program, (void)log, FAILED; }
int nvrtcGetCUBINSize(void *program, size_t *size) { return (void)program, (void)size, FAILED; }
int nvrtcGetCUBIN(void *program, char *cubin) { return (void)program, (void)cubin, FAILED; }
int nvrtcDestroyProgram(void **program) { return (void)program, FAILED; }
