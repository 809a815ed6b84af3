import type { RouteErrors } from './http/request/route.ts'
import { anthropicErrors } from './surfaces/anthropic/errors.ts'
import { cohereErrors } from './surfaces/cohere/errors.ts'
import { falErrors } from './surfaces/fal/errors.ts'
import { ollamaErrors } from './surfaces/ollama/errors.ts'
import { replicateErrors } from './surfaces/replicate/errors.ts'
import { slugErrors } from './surfaces/slug/errors.ts'

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
