import { expect, test } from 'vitest'
import { parameterSize } from '../../../../server/surfaces/ollama/models.ts'

test.each([
  [8_190_735_360, '8.2B'],
  [1_000_000_000, '1B'],
  [596_049_920, '596M'],
  [137_000, '137K'],
  [12, '12'],
])('%i parameters are %s', (count, text) => expect(parameterSize(count)).toBe(text))
