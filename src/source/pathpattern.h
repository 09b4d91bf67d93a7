/* One pattern for the paths that differ only in what was made up for each file, so that a leak of a thousand temp files is one
 * row of a thousand, not a thousand rows of one. A word is a run of letters and digits.
 *
 * Everywhere:
 *   R1  a UUID, and a word of 8 and more hexadecimal digits (of one case, letters and figures both), is "#"
 *   R2  other runs of figures are "#"                                   "/var/log/job-17.log"    "/var/log/job-#.log"
 * Below a folder named tmp, temp, shm or run also:
 *   R3  "tmp" and 8 of a-z 0-9 _ (Python's tempfile) is "tmp#"          "/tmp/tmpk3jd8f2a.wav"   "/tmp/tmp#.wav"
 *   R4  8 of a-z 0-9 _ between marks, in which a letter follows a figure: "#" (tempfile with a prefix)
 *                                                                       "/tmp/up_k3_d8f2a.wav"   "/tmp/up_#.wav"
 *   R5  a word of 6 and more that changes at least twice between letters and figures, or of just 6, 8 or 10 (mkstemp, mktemp) in
 *       which a letter follows a figure, or a capital within begins no hump as in "MyFile", is "#"
 *                                                                       "/tmp/sess.aBcDeF"       "/tmp/sess.#"
 * What happens to look like a word stays one: of tempfile names with a prefix some 8 in 100, of mkstemp names some 5.
 */
#ifndef LT_SOURCE_PATHPATTERN_H
#define LT_SOURCE_PATHPATTERN_H

#include <stddef.h>

/* out is NUL-terminated, cut at size - 1 (size > 0); its length. */
size_t path_pattern(const char *path, size_t len, char *out, size_t size);

#endif
