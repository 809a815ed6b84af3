import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openapi } from '../../server/docs/openapi.ts'
import { routeTable } from '../../server/routes.ts'
import { root } from '../bundle.ts'
import { type ApiDescription, apiTypes } from './api-types.ts'

/** Writes the types of the API for the console. The file is not in the repository, because the routes say the same. */
const file = join(root, 'server/console/app/api/types.generated.ts')
const text = apiTypes(openapi(routeTable(), '0') as unknown as ApiDescription)
if (!existsSync(file) || readFileSync(file, 'utf8') !== text) writeFileSync(file, text)
