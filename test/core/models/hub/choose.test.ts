import { expect, test } from 'vitest'
import { chooseFiles, type HubFile, quantizationOf } from '../../../../core/models/hub/choose.ts'

const files = (...paths: string[]): HubFile[] =>
  paths.map((path, at) => ({ path, size: 1000 + at, hash: { kind: 'sha256', hex: 'a'.repeat(64) } }))
const choose = (paths: string[], asked: string | null = null) => {
  const { kind, main, files: chosen, others } = chooseFiles('o/n', files(...paths), asked)
  return { kind, main, files: chosen.map(({ path }) => path), others }
}

test.each([
  ['m-Q4_K_M.gguf', 'Q4_K_M'],
  ['m.Q8_0.gguf', 'Q8_0'],
  ['m-iq4_xs.gguf', 'IQ4_XS'],
  ['BF16/m-BF16-00001-of-00002.gguf', 'BF16'],
  ['m-MXFP4_MOE.gguf', 'MXFP4'],
  ['m-f16.gguf', 'F16'],
  ['qwen2.5-7b.gguf', undefined],
  ['Q4You-7B.gguf', undefined],
])('the name %s states %s', (path, quantization) => {
  expect(quantizationOf(path)).toBe(quantization)
})

test.each<[string, string[], string]>([
  ['Q4_K_M before all', ['m-Q8_0.gguf', 'm-Q4_K_M.gguf', 'm-Q2_K.gguf'], 'm-Q4_K_M.gguf'],
  ['then its neighbours', ['m-Q8_0.gguf', 'm-Q5_K_M.gguf', 'm-F16.gguf'], 'm-Q5_K_M.gguf'],
  ['what is not in the list comes last, the smallest first', ['m-Q2_K.gguf', 'm-IQ1_S.gguf'], 'm-Q2_K.gguf'],
  ['never a companion', ['mmproj-Q4_K_M.gguf', 'm-lora-Q4_K_M.gguf', 'm-Q2_K.gguf'], 'm-Q2_K.gguf'],
  ['the only one', ['README.md', 'model.gguf'], 'model.gguf'],
])('without a file: %s', (_, paths, main) => {
  expect(choose(paths)).toMatchObject({ kind: 'gguf', main, files: [main] })
})

test('the other builds are listed', () => {
  expect(choose(['m-Q8_0.gguf', 'm-Q4_K_M.gguf', 'mmproj.gguf']).others).toEqual(['m-Q8_0.gguf', 'mmproj.gguf'])
})

test('a model in parts is one build, and is only chosen whole', () => {
  const parts = ['m-Q4_K_M-00002-of-00002.gguf', 'm-Q4_K_M-00001-of-00002.gguf']
  const whole = { main: 'm-Q4_K_M-00001-of-00002.gguf', files: parts.toReversed() }
  expect(choose([...parts, 'm-Q8_0.gguf'])).toMatchObject({ ...whole, others: ['m-Q8_0.gguf'] })
  expect(choose([...parts, 'm-Q8_0.gguf'], 'Q4_K_M')).toMatchObject(whole)
  expect(choose([...parts, 'm-Q8_0.gguf'], parts[0])).toMatchObject(whole)
  expect(choose([parts[0]!, 'm-Q8_0.gguf']).main).toBe('m-Q8_0.gguf')
})

test.each<[string, string]>([
  ['sub/m-Q8_0.gguf', 'sub/m-Q8_0.gguf'],
  ['sub/m-Q8_0', 'sub/m-Q8_0.gguf'],
  ['M-Q8_0.GGUF', 'sub/m-Q8_0.gguf'],
  ['q8_0', 'sub/m-Q8_0.gguf'],
])('a file can be requested as %s', (asked, main) => {
  expect(choose(['sub/m-Q8_0.gguf', 'm-Q4_K_M.gguf'], asked).main).toBe(main)
})

test('an ambiguous name is refused, and an unknown one lists the builds', () => {
  expect(() => choose(['a/m-Q8_0.gguf', 'b/m-Q8_0.gguf'], 'Q8_0')).toThrow('a/m-Q8_0.gguf, b/m-Q8_0.gguf')
  expect(() => choose(['a.gguf', 'b.txt'], 'c.gguf')).toThrow("has no file 'c.gguf'. It has: a.gguf.")
  expect(() => choose(['pytorch_model.bin', 'README.md'])).toThrow(/neither a GGUF file nor safetensors/)
})

test('of a safetensors model the files that the engine reads are chosen, once', () => {
  const paths = [
    '.gitattributes',
    'README.md',
    'config.json',
    'consolidated.safetensors',
    'model-00001-of-00002.safetensors',
    'model-00002-of-00002.safetensors',
    'model.safetensors.index.json',
    'modeling_x.py',
    'onnx/model.onnx',
    'original/params.json',
    'pytorch_model.bin',
    'tokenizer.json',
    '1_Pooling/config.json',
  ]
  const choice = choose(paths)
  expect(choice).toMatchObject({ kind: 'snapshot', main: null })
  expect(choice.files).toEqual([
    'config.json',
    'model-00001-of-00002.safetensors',
    'model-00002-of-00002.safetensors',
    'model.safetensors.index.json',
    'modeling_x.py',
    'tokenizer.json',
    '1_Pooling/config.json',
  ])
  expect(choose(['params.json', 'consolidated.safetensors']).files).toContain('consolidated.safetensors')
})
