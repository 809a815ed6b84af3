import { expect, test } from 'vitest'
import { deviceNotes } from '../../../cli/status/placement-notes.ts'

test('the GPUs of the engines are named, and no others', () => {
  const devices = [
    { id: 'gpu0', kind: 'nvidia' as const, name: 'NVIDIA L4' },
    { id: 'gpu1', kind: 'gpu' as const, name: 'llvmpipe (LLVM 15.0.6, 256 bits)' },
    { id: 'cpu', kind: 'cpu' as const, name: 'Processor' },
  ]
  expect(deviceNotes([{ devices: ['gpu1'] }, { devices: ['cpu'] }, { devices: ['gpu1'] }], devices)).toEqual([
    'gpu1 is llvmpipe (LLVM 15.0.6, 256 bits).',
  ])
  expect(deviceNotes([{ devices: [] }], devices)).toEqual([])
})
