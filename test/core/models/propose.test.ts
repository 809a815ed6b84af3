import { expect, test } from 'vitest'
import type { GgufHeader } from '../../../core/models/gguf-header.ts'
import { idFrom, purposeOf, purposeOfFolder, slugOf } from '../../../core/models/propose.ts'

const writer = {
  kind: 'model',
  architecture: 'llama',
  poolingType: null,
  classifier: false,
  causal: true,
  chatTemplate: '{{ messages }}',
} as GgufHeader

test.each<[string, Partial<GgufHeader>, string[]]>([
  ['a chat model', {}, ['std/chat-completion', 'std/completion']],
  ['a base model', { chatTemplate: null }, ['std/completion']],
  [
    'an encoder',
    { architecture: 'bert', causal: false, poolingType: 'cls', chatTemplate: null },
    ['std/embeddings', 'std/score'],
  ],
  ['an encoder that says nothing of pooling', { causal: false, chatTemplate: null }, ['std/embeddings', 'std/score']],
  ['a writer made to embed, its template still there', { poolingType: 'last' }, ['std/embeddings', 'std/score']],
  ['a cross-encoder', { causal: false, poolingType: 'rank', classifier: true }, ['std/rerank', 'std/score']],
  ['a writer made to rank', { poolingType: 'rank' }, ['std/rerank', 'std/score']],
  ['an older cross-encoder', { causal: false, classifier: true }, ['std/rerank', 'std/score']],
])('%s', (_, header, tasks) => {
  expect(purposeOf({ ...writer, ...header })?.tasks).toEqual(tasks)
})

test('a file that is no model by itself has no purpose', () => {
  for (const kind of ['adapter', 'mmproj', 'imatrix']) expect(purposeOf({ ...writer, kind })).toBeNull()
})

test.each<[unknown, boolean, string]>([
  [{ architectures: ['Qwen3ForCausalLM'] }, false, 'std/chat-completion'],
  [{ architectures: ['Qwen3ForCausalLM'] }, true, 'std/embeddings'],
  [{ architectures: ['XLMRobertaForSequenceClassification'] }, false, 'std/rerank'],
  [{ architectures: ['BertModel'] }, false, 'std/embeddings'],
  [{}, false, 'std/chat-completion'],
  [null, false, 'std/chat-completion'],
])('a folder with %j, pooling said: %s', (config, pools, task) => {
  expect(purposeOfFolder(config, { pools }).tasks[0]).toBe(task)
})

test.each([
  ['Qwen/Qwen3-8B-GGUF', 'qwen3-8b'],
  ['/m/Qwen3-8B-Q4_K_M.gguf', 'qwen3-8b'],
  ['/m/Llama-3.3-70B-Instruct.Q8_0-00001-of-00003.gguf', 'llama-3.3-70b-instruct'],
  ['bge-m3-f16.gguf', 'bge-m3'],
  ['Café Modèle v2', 'cafe-modele-v2'],
  ['x', undefined],
  ['model.gguf', undefined],
  ['ggml-model-Q4_K_M.gguf', undefined],
  ['…', undefined],
  ['../../etc', 'etc'],
])('%s becomes %s', (name, slug) => {
  expect(slugOf(name)).toBe(slug)
})

test('ids are taken from the first name that gives one, and never twice', () => {
  expect(idFrom([null, 'model.gguf', 'Good Name'], 'Q4_K_M', new Set())).toBe('good-name')
  expect(idFrom(['m1'], 'Q4_K_M', new Set(['m1']))).toBe('m1-q4_k_m')
  expect(idFrom(['m1'], 'Q4_K_M', new Set(['m1', 'm1-q4_k_m', 'm1-q4_k_m-2']))).toBe('m1-q4_k_m-3')
  expect(idFrom([], null, new Set(['model']))).toBe('model-2')
})
