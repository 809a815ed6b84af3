import type { Registry } from '../../../core/models/registry.ts'

const prefix = 'fal-ai/'

/** Returns the slug for an application id of fal's clients: without `fal-ai/` if only the shorter slug exists. */
export function appSlug(app: string, { bySlug }: Pick<Registry, 'bySlug'>): string {
  const shorter = app.slice(prefix.length)
  return app.startsWith(prefix) && !bySlug(app) && bySlug(shorter) ? shorter : app
}
