import { fallbackOrigin, isFallbackOrigin } from '../store/fallback-spend.ts'
import type { ParentLimits, VerifiableToken } from '../store/store.ts'

/** Who spends, and the limits for a month in millionths of the currency unit; null without a limit. */
export interface Spender {
  organizationId: string
  /** The first token of the rotations of the token: a new secret has no new budget. */
  originId: string
  tokenName: string
  organizationLimit: number | null
  tokenLimit: number | null
  /** The budgets of the tokens that created it, which bound it too. */
  parents: readonly ParentLimits[]
  /** The model that does the work as a fallback, and what its organization may spend on it in a month. */
  fallback?: { modelId: string; limit: number | null }
}

/** The spender of a caller; `organizationLimit` is the effective limit of its organization. */
export const spenderOf = (
  token: Pick<VerifiableToken, 'organizationId' | 'originId' | 'name' | 'limits' | 'parentLimits'>,
  organizationLimit: number | null,
): Spender => ({
  organizationId: token.organizationId,
  originId: token.originId,
  tokenName: token.name,
  organizationLimit,
  tokenLimit: token.limits.monthlySpendLimit,
  parents: token.parentLimits,
})

/** The spender of work that holds already: what runs is not refused. The limit of its fallback stays. */
export const withoutLimits = (spender: Spender): Spender => ({
  ...spender,
  organizationLimit: null,
  tokenLimit: null,
  parents: spender.parents.map(parent => ({ ...parent, monthlySpendLimit: null })),
})

/** A limit that bounds a spender: of a token if it has a name. */
export interface Bound {
  /** Of the account. */
  id: string
  limit: number | null
  tokenName?: string
}

/** All limits that bound a spender. */
export const boundsOf = ({
  organizationId,
  organizationLimit,
  originId,
  tokenLimit,
  tokenName,
  parents,
}: Spender): Bound[] => [
  { id: organizationId, limit: organizationLimit },
  { id: originId, limit: tokenLimit, tokenName },
  ...parents.map(parent => ({ id: parent.originId, limit: parent.monthlySpendLimit, tokenName: parent.tokenName })),
]

/** The accounts of a token: its own, and those of the tokens whose budgets it shares. */
export const tokenIdsOf = (originId: string, parents: readonly ParentLimits[]): string[] => [
  originId,
  ...parents.map(parent => parent.originId),
]

/** The account of what an organization spends on a model as a fallback. */
export const fallbackAccount = (organizationId: string, modelId: string): string =>
  accountIdOf(organizationId, fallbackOrigin(modelId))

/** The account of a row of the store: of an organization, a token, or a fallback of an organization. */
export function accountIdOf(organizationId: string, originId: string | null): string {
  if (originId === null) return organizationId
  return isFallbackOrigin(originId) ? `${organizationId} ${originId}` : originId
}

/** The accounts of a spender besides that of the organization. */
export function accountIdsOf({ organizationId, originId, parents, fallback }: Spender): string[] {
  const ofToken = tokenIdsOf(originId, parents)
  return fallback ? [...ofToken, fallbackAccount(organizationId, fallback.modelId)] : ofToken
}
