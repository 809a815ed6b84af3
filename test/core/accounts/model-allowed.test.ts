import { expect, test } from 'vitest'
import { statusAt } from '../../../core/accounts/accounts.ts'
import { modelAllowed } from '../../../core/accounts/model-allowed.ts'

test.each([
  [null, 'anything', true],
  [['qwen3'], 'qwen3', true],
  [['qwen3'], 'qwen3-8b', false],
  [['qwen*'], 'qwen3-8b', true],
  [['*/tiny-*'], 'infer/tiny-chat', true],
  [['*/tiny-*'], 'tiny-chat', false],
  [['qwen/*-chat'], 'qwen/3-chat', true],
  [['qwen/*-chat'], 'qwen/3-base', false],
  [['a*a'], 'a', false],
  [['a*b*c'], 'a-b-c', true],
  [['a*b*c'], 'a-c-b', false],
  [['(.*)+$'], 'aaaa', false],
  [['x', '*'], 'y', true],
  [[], 'y', false],
] as const)('%j allows %s: %s', (patterns, id, allowed) =>
  expect(modelAllowed(patterns && [...patterns], id)).toBe(allowed),
)

test.each([
  ['active', null, 'active'],
  ['active', 10, 'expired'],
  ['active', 11, 'active'],
  ['revoked', 5, 'revoked'],
  ['disabled', 5, 'disabled'],
] as const)('%s with expiry %s is %s at 10', (status, expiresAt, now) =>
  expect(statusAt({ status, expiresAt }, 10)).toBe(now),
)
