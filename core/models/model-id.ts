import { z } from 'zod'

export const modelIdPattern = /^[A-Za-z0-9][A-Za-z0-9._:-]*(\/[A-Za-z0-9][A-Za-z0-9._:-]*)*$/

/** A name of a model in requests: its id, an alias or the name of a profile. */
export const modelNameSchema = () =>
  z.string().max(128).regex(modelIdPattern, 'Letters, digits, ".", "_", ":", "-" and "/" between parts.')
