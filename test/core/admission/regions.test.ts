import { expect, test } from 'vitest'
import { requireRegion } from '../../../core/admission/regions.ts'
import type { Region, RegionLabel } from '../../../core/schemas/region.ts'

const required = (
  region: RegionLabel | undefined,
  asked: (Region | null | undefined)[],
  restricted: string | null = null,
  others: (RegionLabel | undefined)[] = [],
) =>
  requireRegion({ id: 'chat', region }, { asked, organization: { name: 'acme', region: restricted } }, () =>
    [region, ...others].map(one => ({ region: one })),
  )

test.each<[RegionLabel | undefined, (Region | null | undefined)[], string | null, RegionLabel | null]>([
  [undefined, [], null, null],
  ['EU', [], null, null],
  ['EU', ['Global', undefined, null], null, null],
  ['EU', ['EU'], null, 'EU'],
  ['EU', ['Global', 'EU'], null, 'EU'],
  ['US', [], 'US', 'US'],
  ['US', ['US'], 'US', 'US'],
  ['US', ['Global'], 'US', 'US'],
  ['US', [], 'Global', null],
])('a model in %s, asked for %j, of an organization in %s: %s', (region, asked, restricted, expected) => {
  expect(required(region, asked, restricted)).toBe(expected)
})

test.each<[string, RegionLabel | undefined, (Region | undefined)[], string | null, string, string]>([
  [
    'another region',
    'US',
    ['EU'],
    null,
    'no_capacity',
    "The model 'chat' has no engine in the region EU: it runs in US.",
  ],
  ['no region', undefined, ['EU'], null, 'no_capacity', 'it runs in no region'],
  ['one of two demands', 'US', ['US', 'EU'], null, 'no_capacity', 'in the region EU'],
  ['the organization', 'US', [], 'EU', 'region_restricted', "The organization 'acme' is restricted to the region EU"],
  ['the organization, whatever is asked', 'US', ['US'], 'EU', 'region_restricted', 'runs in US'],
])('refused: %s', (_, region, asked, restricted, code, words) => {
  const refused = () => required(region, asked, restricted)
  expect(refused).toThrow(words)
  expect(refused).toThrow(expect.objectContaining({ code, retryable: false }) as Error)
})

test('the refusal names the regions that there are', () => {
  expect(() => required('US', ['EU'], null, ['EU', undefined, 'US'])).toThrow('Regions of the models here: EU, US.')
  expect(() => required(undefined, ['EU'])).toThrow('No model here has a region.')
})
