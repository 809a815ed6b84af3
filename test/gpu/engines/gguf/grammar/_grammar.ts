import type { Llama, LlamaGrammar } from 'node-llama-cpp'
import { getLlama, LlamaLogLevel } from 'node-llama-cpp'
import { Failure } from '../../../../../core/failure.ts'
import { runSteps } from '../../../../../core/time-slice.ts'
import { openGrammar } from '../../../../../gpu/engines/gguf/grammar/grammar.ts'
import type { Origin } from '../../../../../gpu/engines/gguf/grammar/schema.ts'

export const origin: Origin = { param: 'response_format', path: 'schema' }

/** The grammar of one schema, as for `response_format: {type: 'json_schema'}`. */
export function schemaGrammar(schema: unknown, from: Origin): string {
  const grammar = openGrammar()
  return runSteps(grammar.text(runSteps(grammar.rule(schema, from))))
}

/** The grammar of any JSON object, as for `response_format: {type: 'json_object'}`. */
export function objectGrammar(): string {
  const grammar = openGrammar()
  return runSteps(grammar.text(runSteps(grammar.object())))
}

/** llama.cpp without a model: sufficient to parse grammars. */
export const openLlama = (): Promise<Llama> =>
  getLlama({
    gpu: false,
    build: 'never',
    skipDownload: true,
    progressLogs: false,
    maxThreads: 1,
    logLevel: LlamaLogLevel.error,
  })

/** Returns a function that tells whether llama.cpp's grammar matches a text. Throws for a grammar it cannot parse. */
export async function openMatcher(llama: Llama, grammar: string): Promise<(text: string) => boolean> {
  const read = (await llama.createGrammar({ grammar })) as LlamaGrammar & { _testText(text: string): boolean }
  return text => read._testText(text)
}

/** The Failure that refuses the schema. */
export function refusal(schema: unknown): Failure {
  try {
    schemaGrammar(schema, origin)
  } catch (error) {
    if (error instanceof Failure) return error
    throw error
  }
  throw new Error(`There is a grammar for ${JSON.stringify(schema)}`)
}
