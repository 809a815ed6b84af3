/** Returns the words of a text with the spaces before them, so that joining them gives the text. */
const wordsOf = (text: string): string[] => text.match(/\s*\S+/g) ?? []

const plain = (word: string) =>
  word
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]/gu, '')

/**
 * Decides which part of changing transcriptions of growing audio is shown: words that two transcriptions in a row agree
 * on, without the last one, which may be cut off. What was shown is never taken back.
 */
export function openStableText() {
  let shown = ''
  let before: string[] = []

  /** Returns what follows the shown text in `text`; undefined if `text` contradicts it. */
  function rest(text: string) {
    return text.startsWith(shown) ? text.slice(shown.length) : undefined
  }

  return {
    /** Returns the text to add for another transcription of the audio so far. */
    partial(transcript: string): string {
      const words = wordsOf(transcript.trim())
      let agreed = 0
      while (agreed < words.length - 1 && agreed < before.length && plain(words[agreed]!) === plain(before[agreed]!))
        agreed++
      before = words
      const added = rest(words.slice(0, agreed).join('')) ?? ''
      shown += added
      return added
    },
    /** Returns the text to add for the final transcription; nothing if that contradicts what was shown. */
    final(transcript: string): string {
      const added = rest(transcript.trim()) ?? ''
      shown += added
      return added
    },
  }
}
export type StableText = ReturnType<typeof openStableText>
