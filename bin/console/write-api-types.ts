import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beginStep, upToDate } from '../stamp.ts'

/** Writes the types of the API for the console. The file is not in the repository, because the routes say the same. */
if (!upToDate('api-types')) {
  const end = beginStep('api-types')
  const file = join(import.meta.dirname, '../../server/console/app/api/types.generated.ts')
  const text = await apiTypesOfRoutes()
  if (!existsSync(file) || readFileSync(file, 'utf8') !== text) writeFileSync(file, text)
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
