import { getLlama, LlamaLogLevel } from 'node-llama-cpp'

const llama = await getLlama({
  gpu: false,
  build: 'never',
  skipDownload: true,
  progressLogs: false,
  maxThreads: 1,
  logLevel: LlamaLogLevel.error,
})

/** Whether llama.cpp accepts the whole text under a grammar. */
export async function reader(grammar: string): Promise<(text: string) => boolean> {
  const read = (await llama.createGrammar({ grammar })) as unknown as { _testText(text: string): boolean }
  return text => read._testText(text)
}
