import type { Region } from '../schemas/region.ts'
import type { Store } from '../store/store.ts'
import type { Plans } from './plans.ts'

/** Returns what admission needs to know of a token in any state; undefined if it or its organization no longer exists. */
export const openRequesterOf =
  ({ store, plans }: { store: Pick<Store, 'organizations' | 'tokens'>; plans: Pick<Plans, 'limitsOf'> }) =>
  async (organizationId: string, tokenId: string, region: Region | undefined) => {
    const [organization, token] = await Promise.all([
      store.organizations.find(organizationId),
      store.tokens.find(organizationId, tokenId),
    ])
    if (!organization || organization.status === 'deleted' || !token) return undefined
    const { name: organizationName, region: restricted } = organization
    return {
      organizationId,
      tokenId,
      region,
      limits: plans.limitsOf(organization),
      token: { ...token, organizationName, region: restricted },
    }
  }
