import { expect, test } from 'vitest'
import { loadRefusal } from '../../../gpu/presets/load-refusal.ts'

test.each([
  ["llama_model_load: error loading model: missing tensor 'blk.0.attn_q.weight'", 'model'],
  [
    "llama_model_load: error loading model: error loading model architecture: unknown model architecture: 'mirage9'",
    'model',
  ],
  ["llama_model_load: error loading model: error loading model vocabulary: unknown pre-tokenizer type: 'new'", 'model'],
  [
    'llama_model_load: error loading model: done_getting_tensors: wrong number of tensors; expected 292, got 291',
    'model',
  ],
  ["[2026-11-20 10:00:00] gguf_init_from_file_impl: invalid magic characters: 'PK??', expected 'GGUF'", 'files'],
  [
    "error loading model: tensor 'output.weight' data is not within the file bounds, model is corrupted or incomplete",
    'files',
  ],
  ['whisper_model_load: invalid model data (bad magic)', 'files'],
  ['safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge', 'files'],
  ['ValueError: The checkpoint has model type `new` but Transformers does not recognize this architecture.', 'model'],
  ["ValueError: Model architectures ['NewForCausalLM'] are not supported for now. Supported: …", 'model'],
])('%s: %s', (line, lies) => {
  const refusal = loadRefusal(['loading', line, 'main: exiting due to model loading error'])
  expect(refusal?.lies).toBe(lies)
  expect(line.replace(/\.$/, '')).toContain(refusal!.said)
})

test.each([
  'RuntimeError: CUDA out of memory',
  "error: unknown argument: '--fast'",
  'bind: Address already in use',
  'llama_model_load: error loading model: unable to allocate CUDA0 buffer',
])('%s: another start may succeed', line => {
  expect(loadRefusal([line, 'llama_model_load_from_file_impl: failed to load model'])).toBeUndefined()
})

test('is quoted without places and times', () => {
  const line = "12:00:01 ERROR load: /models/private/x.gguf: invalid magic characters: 'PK'"
  expect(loadRefusal([line])!.said).not.toMatch(/private|12:00|ERROR/)
})
