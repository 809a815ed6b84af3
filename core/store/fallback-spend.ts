/** Begins the `origin_id` of rows of spending that are of a fallback and not of a token. No id of a token begins so. */
const prefix = 'fallback:'

/** The `originId` of what an organization has spent on answers of a model as a fallback. */
export const fallbackOrigin = (modelId: string): string => prefix + modelId

/** Whether an `originId` is that of a fallback. */
export const isFallbackOrigin = (originId: string): boolean => originId.startsWith(prefix)
