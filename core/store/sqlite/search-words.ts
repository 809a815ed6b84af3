/** Further words of a search are ignored. */
export const maxSearchWords = 8

/** Text in the form in which it is searched: any case, and the same character however it is encoded. */
export const fold = (text: string): string => text.normalize('NFKC').toLowerCase()

/** The words of a search, folded. */
export const searchWords = (search: string): string[] =>
  fold(search).split(/\s+/).filter(Boolean).slice(0, maxSearchWords)

/** Whether a text has all of these words. */
export function hasWords(text: string, words: readonly string[]): boolean {
  const folded = fold(text)
  return words.every(word => folded.includes(word))
}
