import { expect, test } from 'vitest'
import { chooseOrganization } from '../../../cli/accounts/account-client.ts'
import type { Organization } from '../../../core/store/store.ts'

const named = (id: string, name: string) => ({ id, name, plan: 'free', status: 'active' }) as Organization
const acme = named('org_1', 'acme')
const first = named('org_2', 'default')
const tricky = named('org_3', 'org_1')

test.each([
  ['by its id', [acme, first], 'org_1', acme],
  ['by its name', [acme, first], 'acme', acme],
  ["by its id rather than by another's name", [tricky, acme], 'org_1', acme],
  ['without a name if it is the only one', [acme], undefined, acme],
  ['without a name if it is the one of the first start', [acme, first], undefined, first],
] as const)('an organization is found %s', (_, all, idOrName, found) => {
  expect(chooseOrganization(all, idOrName)).toBe(found)
})

test('with several organizations and none of them the first, one must be named', () => {
  expect(() => chooseOrganization([acme, tricky], undefined)).toThrow('Choose one with --org: acme, org_1.')
})

test('an unknown organization is refused with the existing ones', () => {
  expect(() => chooseOrganization([acme, first], 'acne')).toThrow(
    "There is no organization 'acne'. Available: acme, default.",
  )
})

test('a long list is shortened', () => {
  const many = Array.from({ length: 30 }, (_, at) => named(`org_${at}`, `n${at}`))
  expect(() => chooseOrganization(many, 'x')).toThrow(/n9 and 20 more\.$/)
})

test('without any organization the message says how to create one', () => {
  expect(() => chooseOrganization([], undefined)).toThrow('infer serve')
})
