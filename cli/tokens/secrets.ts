import { hintOf, parseSecret, secretPattern } from '../../core/accounts/secret.ts'

/** Where a secret was found. */
export interface FoundSecret {
  secret: string
  hint: string
  /** Counted from 1. */
  line: number
}

/** The longest text that can be part of a secret whose rest is yet to come. */
const secretLength = 71

/**
 * Finds well-formed secrets in bytes of any kind, however they are cut and however long their lines are. Holds no more
 * than one piece and one secret's length. A hit whose checksum is wrong is none.
 */
export function openSecretFinder() {
  const pattern = new RegExp(secretPattern.source, 'g')
  let rest = ''
  let line = 1

  return {
    feed(bytes: Buffer): FoundSecret[] {
      // Latin-1 gives every byte one character, so binary files are text like any other.
      const text = rest + bytes.toString('latin1')
      const found: FoundSecret[] = []
      let counted = 0
      let keepFrom = Math.max(0, text.length - secretLength + 1)
      pattern.lastIndex = 0
      for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
        const [secret] = match
        if (parseSecret(secret) === undefined) {
          // A forged beginning must not hide a real one that starts within it.
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
