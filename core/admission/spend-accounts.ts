import { fallbackOrigin, isFallbackOrigin } from '../store/fallback-spend.ts'

/** The account of what an organization spends on a model as a fallback. */
export const fallbackAccount = (organizationId: string, modelId: string): string =>
  accountIdOf(organizationId, fallbackOrigin(modelId))

/** The account of a row of the store: of an organization, a token, or a fallback of an organization. */
export function accountIdOf(organizationId: string, originId: string | null): string {
  if (originId === null) return organizationId
  return isFallbackOrigin(originId) ? `${organizationId} ${originId}` : originId
}
