import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openapi } from '../../server/openapi.ts'
import { routeTable } from '../../server/routes.ts'
import { root } from '../bundle.ts'
import { type ApiDescription, apiTypes } from './api-types.ts'

const text = apiTypes(openapi(routeTable(), '0') as unknown as ApiDescription)
/**
 * Writes the types of the API for the console and for the command line, which may not import each other. The files are
 * not in the repository, because the routes say the same.
 */
for (const path of ['server/console/app/api/types.generated.ts', 'cli/client/types.generated.ts']) {
  const file = join(root, path)
  if (!existsSync(file) || readFileSync(file, 'utf8') !== text) writeFileSync(file, text)
}
