import type { LlamaModel, Token } from 'node-llama-cpp'
import { Failure } from '../../../core/failure.ts'
import type { Native, NativeGrammarState } from './native.ts'

export interface Constraint {
  /** In GBNF. */
  grammar: string
  /** The text that must have been said before the grammar holds, for what follows it; from the start where left out. */
  after?: string
}

/**
 * Where a text stands in its grammar. Throws Failure `invalid_value` for a grammar that llama.cpp cannot read.
 * `bytesOf` is what a token says.
 */
export function openConstraint(
  native: Native,
  model: Pick<LlamaModel, 'tokenize'>,
  { grammar, after }: Constraint,
  bytesOf: (token: Token) => Uint8Array,
) {
  const begin = (): NativeGrammarState => {
    try {
      return native.newGrammarState(grammar)
    } catch (cause) {
      throw new Failure('invalid_value', 'llama.cpp cannot read the grammar of this request.', { cause })
    }
  }
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let state = begin()
  let holds = after === undefined
  let heard = ''

  return {
    /** The state to draw under; undefined while the trigger has not come. */
    get state(): NativeGrammarState | undefined {
      return holds ? state : undefined
    },
    /**
     * Hears a token that was drawn before the grammar held. False when it completes the trigger but goes on with what
     * the grammar does not begin with; another one must be drawn then.
     */
    hear(token: Token): boolean {
      if (holds || after === undefined) return true
      const text = heard + decoder.decode(bytesOf(token), { stream: true })
      const found = text.indexOf(after)
      if (found < 0) {
        heard = text.slice(-after.length)
        return true
      }
      const rest = text.slice(found + after.length)
      if (rest === '' || native.advance(state, model.tokenize(rest, false, 'trimLeadingSpace'))) {
        holds = true
        return true
      }
      state = begin()
      return false
    },
  }
}
