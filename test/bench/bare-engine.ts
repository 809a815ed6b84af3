import { createInterface } from 'node:readline'
import { getLlama, LlamaLogLevel } from 'node-llama-cpp'

/**
 * The baseline of the engine benchmark: node-llama-cpp used as in its documentation, with concurrent sequences of one
 * context. Reads lines of `<sequences> <tokens>` and prints one line when each run has ended.
 */
const given = JSON.parse(process.argv[2]!) as { model: string; sequences: number }
const llama = await getLlama({
  gpu: false,
  build: 'never',
  skipDownload: true,
  maxThreads: 1,
  logLevel: LlamaLogLevel.error,
})
const model = await llama.loadModel({ modelPath: given.model })
const context = await model.createContext({ contextSize: 2048, sequences: given.sequences, threads: 1, batchSize: 512 })
const sequences = Array.from({ length: given.sequences }, () => context.getSequence())
let seed = 0

for await (const line of createInterface({ input: process.stdin })) {
  const [streams = 1, tokens = 1] = line.split(' ').map(Number)
  await Promise.all(
    sequences.slice(0, streams).map(async sequence => {
      await sequence.clearHistory()
      // The engine's chat template, written out.
      const prompt = model.tokenize(`<|im_start|>user\nquestion ${++seed}<|im_end|>\n<|im_start|>assistant\n`, true)
      const sampling = { temperature: 0.8, topK: 40, topP: 0.95, minP: 0.05, seed, yieldEogToken: true }
      let said = 0
      for await (const _token of sequence.evaluate(prompt, sampling)) if (++said >= tokens) break
    }),
  )
  console.log('done')
}
