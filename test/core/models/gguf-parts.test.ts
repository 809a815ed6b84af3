import { expect, test } from 'vitest'
import { partsOf } from '../../../core/models/gguf-parts.ts'

test.each([
  [
    '/m/big-00002-of-00003.gguf',
    ['/m/big-00001-of-00003.gguf', '/m/big-00002-of-00003.gguf', '/m/big-00003-of-00003.gguf'],
  ],
  ['one-00001-of-00001.GGUF', ['one-00001-of-00001.GGUF']],
  ['model.gguf', ['model.gguf']],
  ['none-00001-of-00000.gguf', ['none-00001-of-00000.gguf']],
  ['endless-00001-of-99999.gguf', ['endless-00001-of-99999.gguf']],
  ['text-00001-of-00002.txt', ['text-00001-of-00002.txt']],
])('the parts of %s', (name, parts) => expect(partsOf(name)).toEqual(parts))
