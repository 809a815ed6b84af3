import { expect, test } from 'vitest'
import { namedCards } from '../../../gpu/placement/named-cards.ts'

const card = (id: string, name: string, uuid: string | null) => ({ id, kind: 'nvidia' as const, name, uuid })
const machine = [
  card('gpu0', 'NVIDIA A100', 'GPU-11111111-aaaa'),
  card('gpu1', 'NVIDIA L4', 'GPU-22222222-bbbb'),
  card('gpu2', 'NVIDIA L4', null),
  { id: 'cpu', kind: 'cpu' as const, name: 'AMD EPYC', uuid: null },
]

test.each<[names: (number | string)[], ids: string[]]>([
  [[0], ['gpu0']],
  [
    [2, 0],
    ['gpu0', 'gpu2'],
  ],
  [['gpu1'], ['gpu1']],
  [
    ['GPU-22222222-bbbb', 'gpu-1111'],
    ['gpu0', 'gpu1'],
  ],
  [['nvidia l4'], ['gpu1', 'gpu2']],
])('%j: %j', (names, ids) => expect(namedCards('m', names, machine)).toEqual({ ids }))

test.each<[names: (number | string)[], cards: typeof machine, missing: string]>([
  [
    [0, 3],
    machine,
    "'m' is to use the GPU '3' (devices), and this server has gpu0 (NVIDIA A100), gpu1 (NVIDIA L4), gpu2 (NVIDIA L4).",
  ],
  [['cpu'], [], "'m' is to use the GPU 'cpu' (devices), and this server has found none."],
  [['GPU-'], machine.slice(0, 1), "'m' is to use the GPU 'GPU-' (devices), and this server has gpu0 (NVIDIA A100)."],
])('%j is not here', (names, cards, missing) => expect(namedCards('m', names, cards)).toEqual({ missing }))
