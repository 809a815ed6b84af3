import { anthropicErrors } from './anthropic/errors.ts'
import { falErrors } from './fal/errors.ts'
import { ollamaErrors } from './ollama/errors.ts'
import { replicateErrors } from './replicate/errors.ts'
import type { RouteErrors } from './route.ts'
import { slugErrors } from './slug/errors.ts'
import { cohereErrors } from './std/cohere-errors.ts'

/** The error formats of paths that are other vendors' APIs as a whole. */
const prefixes: readonly (readonly [path: string, errors: RouteErrors])[] = [
  ['/anthropic', anthropicErrors],
  ['/fal', falErrors],
  ['/ollama', ollamaErrors],
  ['/replicate', replicateErrors],
  ['/slug', slugErrors],
  ['/std/v2', cohereErrors],
  ['/v2', cohereErrors],
]

/** Returns the error format of requests that match no route; undefined below all other paths. */
export const errorsBelow = (url = ''): RouteErrors | undefined =>
  prefixes.find(([path]) => url.startsWith(path) && /^[/?]?$/.test(url.charAt(path.length)))?.[1]
