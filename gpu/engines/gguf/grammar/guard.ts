import type { Token } from 'node-llama-cpp'
import type { Vocabulary } from '../vocabulary.ts'

/** The bytes that cannot follow a lead byte, since the character has a shorter form; llama.cpp takes some of them. */
const tooLong: Readonly<Record<number, readonly [low: number, high: number]>> = {
  0xe0: [0x80, 0x9f],
  0xf0: [0x80, 0x8f],
}

/**
 * The tokens that a grammar would let through although what they say is not what it has seen, and which must
 * therefore get no chance beside one:
 *  - Control tokens count as their names there, `<|im_start|>` as twelve characters of a string, and say nothing.
 *  - Characters in bytes of their own may be written in more bytes than they need. llama.cpp decodes them, everybody
 *    else reads three or four broken ones.
 * Looks at every token once, a few dozen a step: about 0.2 s for a vocabulary of 150,000.
 */
export function* openGuard(
  vocabulary: Pick<Vocabulary, 'size' | 'bytes' | 'endsText'>,
  shown?: readonly string[],
): Generator<void, Guard> {
  const always = new Set<Token>()
  const behind = new Map<number, Set<Token>>(Object.keys(tooLong).map(lead => [Number(lead), new Set()]))
  for (let id = 0; id < vocabulary.size; id++) {
    const token = id as Token
    const bytes = vocabulary.bytes(token, shown)
    if (bytes.length === 0 && !vocabulary.endsText(token)) always.add(token)
    if (bytes.some((byte, at) => isTooLong(bytes[at - 1], byte))) always.add(token)
    for (const [lead, tokens] of behind) if (isTooLong(lead, bytes[0])) tokens.add(token)
    if (id % 32 === 0) yield
  }
  const sets = new Map([...behind].map(([lead, tokens]) => [lead, new Set([...tokens, ...always])]))
  return { after: last => (last === undefined ? always : (sets.get(last) ?? always)) }
}

export interface Guard {
  /** What must not follow the byte that was said last; the same set for the same byte. */
  after(last: number | undefined): ReadonlySet<Token>
}

function isTooLong(lead: number | undefined, next: number | undefined): boolean {
  const range = lead === undefined ? undefined : tooLong[lead]
  return range !== undefined && next !== undefined && range[0] <= next && next <= range[1]
}
