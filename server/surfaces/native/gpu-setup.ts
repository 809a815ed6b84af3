import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import type { GpuSetupPlan, GpuSetupRun } from '../../../core/models/gpu-setup.ts'
import {
  array,
  boolean,
  integer,
  namedObject,
  nullable,
  nullableString,
  number,
  oneOf,
  string,
} from '../../../core/schemas/fields.ts'
import { requireMachineOwner } from '../../http/access/reach.ts'
import { errorGroups } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'

const route = routeOf({ tag: 'System' })

const Run = namedObject('GpuSetupRun', 'A setup of the GPUs since the start of the server.', {
  status: oneOf('State of the setup.', ['running', 'completed', 'failed', 'cancelled']),
  file: nullableString('The file that is downloaded now, or was last; null before the first.'),
  bytes: number('Bytes of that file that are here.'),
  total_bytes: number('Bytes of that file.'),
  detail: nullableString('What the trial of the backend found, or why the setup failed; null before the end.'),
})

const Plan = namedObject('GpuSetup', 'What the built-in engine needs to use the GPUs of the machine.', {
  needed: boolean('Whether the machine has a GPU that the built-in engine can use.'),
  installed: boolean('Whether a backend is installed.'),
  backend: nullableString('The backend that suits the GPUs and their driver, such as `cuda`; null if none does.'),
  why: string('Why this backend, or why none.'),
  advice: nullableString('What else to do, such as how to update the driver; null if nothing.'),
  packages: array(
    'What would be downloaded.',
    z.object({
      name: string('Name of the package.'),
      version: string('Its version.'),
      bytes: integer('Its size.'),
      license: string('Its licence.'),
    }),
  ),
  bytes: integer('Bytes to download.'),
  source: string('Hosts from which it is downloaded.'),
  folder: string('Folder of the machine into which it is installed.'),
  run: nullable(Run, 'The newest setup; null if none was begun.'),
})

const runView = ({ totalBytes, ...rest }: GpuSetupRun) => ({ ...rest, total_bytes: totalBytes })
const planView = ({ packages, ...rest }: GpuSetupPlan, run: GpuSetupRun | null) => ({
  ...rest,
  packages: [...packages],
  run: run && runView(run),
})

const owner = (exchange: ClientExchange) => requireMachineOwner(exchange, 'Setting up the GPUs is')
const onlyOwner = 'Only for tokens of the organization that owns the machine.'

/** Routes that install what the built-in engine needs to use the GPUs. */
export const gpuSetupRoutes = ({ gpuSetup }: Owners<'gpuSetup'>) => [
  route('GET /api/gpu-setup', 'admin:read', {
    summary: 'Get GPU setup',
    description: `Returns what \`infer engine setup gpu\` would install here, and the progress of a setup. ${onlyOwner}`,
    response: Plan,
    errorCodes: errorGroups.command,
    async handle(_, exchange) {
      owner(exchange)
      return planView(await gpuSetup.plan(), gpuSetup.run())
    },
  }),
  route('POST /api/gpu-setup', 'admin:write', {
    bucket: 'api',
    summary: 'Start GPU setup',
    description: `Downloads and installs the backend that suits the GPUs, as \`infer engine setup gpu --yes\` does: whoever calls this accepts the licences of its packages. Answers at once; \`GET /api/gpu-setup\` has the progress. Models move to the GPUs without a restart. ${onlyOwner}`,
    status: 202,
    response: Run,
    errorCodes: [...errorGroups.command, 'conflict'],
    async handle(_, exchange) {
      owner(exchange)
      return runView(await gpuSetup.begin())
    },
  }),
  route('DELETE /api/gpu-setup', 'admin:write', {
    summary: 'Cancel GPU setup',
    description: `Stops a setup. What has arrived is kept, and the next setup continues it. ${onlyOwner}`,
    response: Run,
    errorCodes: ['organization_mismatch', 'not_found'],
    handle(_, exchange) {
      owner(exchange)
      const run = gpuSetup.cancel()
      if (run === null) throw new Failure('not_found', 'The GPUs are not being set up.')
      return runView(run)
    },
  }),
]
