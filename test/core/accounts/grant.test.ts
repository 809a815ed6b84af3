import { expect, test } from 'vitest'
import { grantModels, grantScopes } from '../../../core/accounts/grant.ts'
import { Failure } from '../../../core/failure.ts'
import type { Scope } from '../../../core/store/store.ts'

const giver = (scopes: Scope[], models: string[] | null = null) => ({ scopes, token: { models } })
const outcome = (grant: () => unknown): unknown => {
  try {
    return grant()
  } catch (thrown) {
    return Failure.from(thrown).code
  }
}

test.each<[string, Scope[], string[], unknown]>([
  ['what he has', ['user:read', 'admin:write'], ['user:read'], ['user:read']],
  ['each once', ['user:read'], ['user:read', 'user:read'], ['user:read']],
  ['not what he lacks', ['admin:write'], ['admin:read'], 'insufficient_scope'],
  ['nothing follows from another scope', ['user:write'], ['user:read'], 'insufficient_scope'],
  ['not what there is not', ['user:read'], ['user:all'], 'invalid_scope'],
])('scopes that a token grants: %s', (_, own, wanted, given) =>
  expect(outcome(() => grantScopes(wanted, giver(own)))).toEqual(given),
)

test.each<[string[] | null, string[] | null, 'given' | 'refused']>([
  [null, null, 'given'],
  [null, ['anything'], 'given'],
  [['a'], ['a'], 'given'],
  [['a'], ['b'], 'refused'],
  [['a'], null, 'refused'],
  [['a'], ['a*'], 'refused'],
  [['a*'], ['a*'], 'given'],
  [['a*'], ['ab*'], 'given'],
  [['a*'], ['*a'], 'refused'],
  [['a*', 'b*'], ['a1', 'b1'], 'given'],
  [['a*', 'b*'], ['a1', 'c1'], 'refused'],
  [['a*c'], ['ab*bc'], 'given'],
  [['a*c'], ['ab*'], 'refused'],
  [['*'], ['a*b*c'], 'given'],
])('a token limited to %j grants %j: %s', (own, wanted, answer) =>
  expect(outcome(() => grantModels(wanted, giver([], own)))).toEqual(answer === 'given' ? wanted : 'model_not_allowed'),
)
