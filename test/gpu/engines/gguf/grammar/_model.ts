import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Llama, LlamaGrammarEvaluationState, type Token, TokenBias } from 'node-llama-cpp'
import { tinyChatRandom } from '../../../../../bin/tiny-models.ts'
import { runSteps } from '../../../../../core/time-slice.ts'
import { openGuard } from '../../../../../gpu/engines/gguf/grammar/guard.ts'
import { openVocabulary } from '../../../../../gpu/engines/gguf/vocabulary.ts'

export interface Writing {
  grammar: string
  temperature: number
  seed: number
}

/** A model with random weights that writes what a grammar allows, up to `limit` tokens. */
export async function openWriter(llama: Llama, limit: number) {
  const folder = mkdtempSync(join(tmpdir(), 'infer-grammar-'))
  const file = join(folder, 'random.gguf')
  writeFileSync(file, tinyChatRandom())
  const model = await llama.loadModel({ modelPath: file })
  const context = await model.createContext({ contextSize: limit + 8, sequences: 1, threads: 1, batchSize: 64 })
  const sequence = context.getSequence()
  const vocabulary = openVocabulary(model)
  const guard = runSteps(openGuard(vocabulary))
  const biases = new Map<ReadonlySet<Token>, TokenBias>()
  const biasOf = (refused: ReadonlySet<Token>): TokenBias => {
    const known = biases.get(refused)
    if (known) return known
    const bias = TokenBias.for(model)
    for (let id = 0; id < vocabulary.size; id++) {
      const token = id as Token
      if (refused.has(token)) bias.set(token, 'never')
      // Closing tokens are slightly more likely, so that most answers are finished.
      else if (['"', '}', ']'].includes(Buffer.from(vocabulary.bytes(token)).toString())) bias.set(token, { logit: 1 })
    }
    biases.set(refused, bias)
    return bias
  }
  return {
    /** What the model wrote, or undefined when it was not finished within the limit. */
    async write({ grammar, temperature, seed }: Writing): Promise<Uint8Array | undefined> {
      await sequence.clearHistory()
      const state = new LlamaGrammarEvaluationState({ model, grammar: await llama.createGrammar({ grammar }) })
      const said: Uint8Array[] = []
      const tokens = sequence.evaluate([model.tokens.bos ?? (1 as Token)], {
        temperature,
        topK: 0,
        topP: 1,
        seed,
        grammarEvaluationState: state,
        tokenBias: () => biasOf(guard.after(said.at(-1)?.at(-1))),
        yieldEogToken: true,
      })
      for await (const token of tokens) {
        if (model.isEogToken(token)) return Buffer.concat(said)
        said.push(vocabulary.bytes(token))
        if (said.length >= limit) return undefined
      }
      return undefined
    },
    async close() {
      await model.dispose()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
