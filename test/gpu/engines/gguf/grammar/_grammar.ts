import type { Llama, LlamaGrammar } from 'node-llama-cpp'
import { getLlama, LlamaLogLevel } from 'node-llama-cpp'
import { Failure } from '../../../../../core/failure.ts'
import { type Origin, schemaGrammar } from '../../../../../gpu/engines/gguf/grammar/grammar.ts'

export const origin: Origin = { param: 'response_format', path: 'schema' }

/** llama.cpp without a model: enough to parse grammars. */
export const openLlama = (): Promise<Llama> =>
  getLlama({
    gpu: false,
    build: 'never',
    skipDownload: true,
    progressLogs: false,
    maxThreads: 1,
    logLevel: LlamaLogLevel.error,
  })

/** Returns for texts whether llama.cpp's grammar matches them. Throws when it cannot parse the grammar. */
export async function openMatcher(llama: Llama, grammar: string): Promise<(text: string) => boolean> {
  const read = (await llama.createGrammar({ grammar })) as LlamaGrammar & { _testText(text: string): boolean }
  return text => read._testText(text)
}

/** The Failure with which the schema is refused. */
export function refusal(schema: unknown): Failure {
  try {
    schemaGrammar(schema, origin)
  } catch (error) {
    if (error instanceof Failure) return error
    throw error
  }
  throw new Error(`There is a grammar for ${JSON.stringify(schema)}`)
}
