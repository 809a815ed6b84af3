import type { components } from './types.generated.ts'

/** A schema of the API by its name. */
export type Schema<Name extends keyof components['schemas']> = components['schemas'][Name]
