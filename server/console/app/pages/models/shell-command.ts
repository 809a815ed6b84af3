/** A command as a shell takes it. */
export const shellCommand = (words: readonly string[]): string =>
  words.map(word => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(' ')
