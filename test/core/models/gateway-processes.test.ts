import { expect, test } from 'vitest'
import { gatewayProcessesFor } from '../../../core/models/gateway-processes.ts'

test.each<[title: string, cores: number, cards: number, processes: number]>([
  ['a small machine has one', 4, 0, 1],
  ['a desktop with a card has one', 8, 1, 1],
  ['eight cores without a card have two', 8, 0, 2],
  ['each card keeps two cores', 16, 2, 3],
  ['many cards leave at least one', 16, 8, 1],
  ['there are eight at most', 128, 8, 8],
])('%s', (_, cores, cards, processes) => {
  expect(gatewayProcessesFor({ cores, cards })).toBe(processes)
})
