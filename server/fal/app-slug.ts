import type { Registry } from '../../core/models/registry.ts'

const prefix = 'fal-ai/'

/** The slug that an application of fal's clients stands for: `fal-ai/` is dropped where nothing is offered under it. */
export function appSlug(app: string, { bySlug }: Pick<Registry, 'bySlug'>): string {
  const shorter = app.slice(prefix.length)
  return app.startsWith(prefix) && !bySlug(app) && bySlug(shorter) ? shorter : app
}
