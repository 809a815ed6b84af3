import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beginStep, upToDate } from '../stamp.ts'

/**
 * Writes the types of the API for the console and for the command line, which may not import each other. The files are
 * not in the repository, because the routes say the same.
 */
if (!upToDate('api-types')) {
  const end = beginStep('api-types')
  const text = await apiTypesOfRoutes()
  for (const path of ['server/console/app/api/types.generated.ts', 'cli/client/types.generated.ts']) {
    const file = join(import.meta.dirname, '../..', path)
    if (!existsSync(file) || readFileSync(file, 'utf8') !== text) writeFileSync(file, text)
  }
  end()
}

/** Imported here, because loading all routes takes longer than everything else. */
async function apiTypesOfRoutes(): Promise<string> {
  const [{ openapi }, { routeTable }, { apiTypes }] = await Promise.all([
    import('../../server/docs/openapi.ts'),
    import('../../server/routes.ts'),
    import('./api-types.ts'),
  ])
  return apiTypes(openapi(routeTable(), '0') as unknown as Parameters<typeof apiTypes>[0])
}
