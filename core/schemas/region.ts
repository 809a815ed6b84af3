/** The labels that a server or a remote model can have. */
export const regionLabels = ['US', 'EU'] as const
export type RegionLabel = (typeof regionLabels)[number]

/** The regions that a workflow or a request can ask for: `Global` asks for nothing. */
export const regions = ['Global', ...regionLabels] as const
export type Region = (typeof regions)[number]

/** Returns the label that a model must have for work in this region; null if any model will do. */
export const requiredLabel = (region: Region | null | undefined): RegionLabel | null =>
  region == null || region === 'Global' ? null : region
