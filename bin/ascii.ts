/**
 * esbuild escapes what is not ASCII in strings but leaves it in regular expressions and comments, and one such
 * character makes V8 hold the whole source in two bytes a character: 4 MB more for as long as the program runs.
 */
export const ascii = (text: string): string =>
  text.replace(
    /[^ -~\s]|\u2028|\u2029|\ufeff|\u00a0/g,
    character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
