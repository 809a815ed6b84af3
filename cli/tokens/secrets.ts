import { hintOf, parseSecret, secretPattern } from '../../core/accounts/secret.ts'

/** A found secret and its position. */
export interface FoundSecret {
  secret: string
  hint: string
  /** Counted from 1. */
  line: number
}

/** Length of a secret in characters. */
const secretLength = 71

/**
 * Finds well-formed secrets with a correct checksum in bytes of any kind, in chunks of any size and lines of any
 * length. Holds at most one chunk and the length of one secret.
 */
export function openSecretFinder() {
  const pattern = new RegExp(secretPattern.source, 'g')
  let rest = ''
  let line = 1

  return {
    feed(bytes: Buffer): FoundSecret[] {
      // Latin-1 maps every byte to one character, so binary files can be searched as text.
      const text = rest + bytes.toString('latin1')
      const found: FoundSecret[] = []
      let counted = 0
      let keepFrom = Math.max(0, text.length - secretLength + 1)
      pattern.lastIndex = 0
      for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
        const [secret] = match
        if (parseSecret(secret) === undefined) {
          // A secret may begin inside an invalid match.
          pattern.lastIndex = match.index + 1
          continue
        }
        line += newlines(text, counted, match.index)
        counted = match.index
        found.push({ secret, hint: hintOf(secret), line })
        keepFrom = Math.max(keepFrom, match.index + secret.length)
      }
      line += newlines(text, counted, keepFrom)
      rest = text.slice(keepFrom)
      return found
    },
  }
}

function newlines(text: string, from: number, to: number): number {
  let count = 0
  for (let at = text.indexOf('\n', from); at >= 0 && at < to; at = text.indexOf('\n', at + 1)) count++
  return count
}
