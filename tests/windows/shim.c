/* A program that starts another one: NAME.exe reads NAME.shim beside itself, one word a line (the
   program first), puts them in front of its own arguments, and ends with that program's exit code. */

#include <stdio.h>
#include <string.h>
#include <windows.h>

enum { LONGEST = 32767 }; /* the longest command line of Windows, its end included */

static char command[LONGEST + 1];

static int add(const char *text, size_t length) {
  size_t used = strlen(command);
  if (used + length >= LONGEST) {
    fputs("shim: the command line is too long\n", stderr);
    return 0;
  }
  memcpy(command + used, text, length);
  command[used + length] = 0;
  return 1;
}

static int add_words_of_file(void) {
  static char word[LONGEST];
  char path[MAX_PATH + 2];
  FILE *file;
  DWORD length = GetModuleFileNameA(NULL, path, MAX_PATH);
  if (length < 4 || length >= MAX_PATH) return 0;
  strcpy(path + length - 4, ".shim"); /* in place of .exe */
  file = fopen(path, "r");
  if (!file) {
    fprintf(stderr, "shim: there is no %s\n", path);
    return 0;
  }
  while (fgets(word, sizeof word, file)) {
    size_t end = strcspn(word, "\r\n");
    if (end && !(add("\"", 1) && add(word, end) && add("\" ", 2))) return 0;
  }
  fclose(file);
  return 1;
}

/* What follows the program's own name, in the caller's very quoting. */
static const char *own_arguments(void) {
  const char *at = GetCommandLineA();
  int quoted = 0;
  for (; *at && (quoted || (*at != ' ' && *at != '\t')); at++)
    if (*at == '"') quoted = !quoted;
  return at;
}

int main(void) {
  STARTUPINFOA start;
  PROCESS_INFORMATION process;
  DWORD code = 1;
  const char *arguments = own_arguments();
  if (!add_words_of_file() || !add(arguments, strlen(arguments))) return 126;
  memset(&start, 0, sizeof start);
  start.cb = sizeof start;
  start.dwFlags = STARTF_USESTDHANDLES;
  start.hStdInput = GetStdHandle(STD_INPUT_HANDLE);
  start.hStdOutput = GetStdHandle(STD_OUTPUT_HANDLE);
  start.hStdError = GetStdHandle(STD_ERROR_HANDLE);
  if (!CreateProcessA(NULL, command, NULL, NULL, TRUE, 0, NULL, NULL, &start, &process)) {
    fprintf(stderr, "shim: Windows error %lu at %s\n", GetLastError(), command);
    return 127;
  }
  WaitForSingleObject(process.hProcess, INFINITE);
  GetExitCodeProcess(process.hProcess, &code);
  return (int)code;
}
