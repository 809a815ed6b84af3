import { z } from 'zod'
import { Failure } from '../../../core/failure.ts'
import type { EngineSetupRun, EngineSetupView, EngineView } from '../../../core/models/engine-setup.ts'
import {
  array,
  boolean,
  namedObject,
  nonEmptyText,
  nullable,
  nullableInteger,
  nullableString,
  number,
  object,
  oneOf,
  string,
} from '../../../core/schemas/fields.ts'
import { Task } from '../../../core/schemas/task.ts'
import { requireMachineOwner } from '../../http/access/reach.ts'
import { errorGroups } from '../../http/request/errors.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'

const route = routeOf({ tag: 'System' })

const progress = {
  status: oneOf('State of the setup.', ['running', 'completed', 'failed', 'cancelled']),
  step: nullableString('What it does now, or did last; null before the first step.'),
  file: nullableString('The file that is downloaded now, or was last; null where the installer downloads by itself.'),
  bytes: number('Bytes of that file that are here.'),
  total_bytes: number('Bytes of that file.'),
  detail: nullableString('What was installed, or why the setup failed; null before the end.'),
}
const Progress = namedObject('EngineSetupProgress', 'A setup of an engine since the start of the server.', progress)
const Run = namedObject('EngineSetupRun', 'A setup of an engine since the start of the server, with its output.', {
  ...progress,
  log: array('The newest lines that it has printed, at most 300, the last one last.', z.string()),
})

const Engine = object('An engine that this machine can start.', {
  engine: string('Its name, for `engine` of a model in `infer.yaml`.'),
  state: oneOf('Whether it is there.', ['built_in', 'installed', 'missing']),
  version: nullableString('The version that models use; null if infer did not install it, or it is missing.'),
  path: nullableString('Path of its program or its folder; null if it is built in or missing.'),
  origin: nullable(
    z.enum(['infer', 'setup', 'user', 'system']),
    'Where it comes from: part of infer, installed by a setup, put into `engines` of the data directory by a user, or on the PATH; null if it is missing.',
  ),
  runs_on: oneOf('Where its models run.', ['gpu', 'cpu', 'either']),
  tasks: array('Tasks of models that it can run.', Task),
  blocked: nullableString('Why it can run no model on this machine; null if it can.'),
  advice: nullableString('What to do next, such as how to install it; null if nothing.'),
  setups: array('Names of the setups that install it, or a part of it.', z.string()),
})

const Setup = object('What `infer engine setup <name>` installs.', {
  name: string('Its name, for `POST /api/engine-setups/{name}`.'),
  title: string('What it is, for people.'),
  state: oneOf(
    'Whether it is installed: `outdated` if it was made for another version of infer, `incomplete` if an installation was interrupted.',
    ['complete', 'outdated', 'incomplete', 'missing'],
  ),
  version: nullableString('The current version; null if it is missing.'),
  source: string('Where it comes from.'),
  license: nullableString('Licence of its program; null where each library has its own.'),
  bytes: nullableInteger('Bytes on the disk once it is complete, about; null if only its release says that.'),
  for_processor: boolean('Whether it is installed without support for GPUs, because this machine has none.'),
  versions: array(
    'The versions that are installed beside each other.',
    object('An installed version.', {
      version: nullableString(
        'Its version, for `engine_version` of a model; null if it was interrupted before it had one.',
      ),
      is_current: boolean('Whether models use it that name no `engine_version`.'),
      state: oneOf(
        '`outdated` if it was made for another version of infer, `incomplete` if its installation was interrupted.',
        ['complete', 'outdated', 'incomplete'],
      ),
      bytes: number('Bytes on the disk.'),
      path: string('Path of its folder.'),
    }),
  ),
  run: nullable(Progress, 'The newest setup since the start of the server; null if none was begun.'),
})

const List = namedObject('EngineList', 'The engines of the machine.', {
  engines: array('Every engine that the machine can start.', Engine),
  setups: array('What can be installed by name.', Setup),
})

const progressView = ({ totalBytes, log: _log, ...rest }: EngineSetupRun) => ({ ...rest, total_bytes: totalBytes })
const runView = (run: EngineSetupRun) => ({ ...progressView(run), log: [...run.log] })
const engineView = ({ tasks, setups, ...rest }: EngineView) => ({ ...rest, tasks: [...tasks], setups: [...setups] })
const setupView = (setup: EngineSetupView, run: EngineSetupRun | null) => ({
  ...setup,
  versions: setup.versions.map(one => ({ ...one })),
  run: run && progressView(run),
})

const owner = (exchange: ClientExchange) => requireMachineOwner(exchange, 'Engines of the machine are')
const onlyOwner = 'Only for tokens of the organization that owns the machine.'
const Named = z.object({ name: nonEmptyText.max(64).describe('Name of the setup, as in `GET /api/engines`.') })
const notBegun = (name: string) =>
  new Failure(
    'not_found',
    `The setup '${name}' was not begun since the start of the server. List setups: GET /api/engines`,
  )

/** Routes that list the engines of the machine and install them. */
export const engineRoutes = ({ engineSetups }: Owners<'engineSetups'>) => [
  route('GET /api/engines', 'admin:read', {
    summary: 'List engines',
    description: `Returns every engine with whether it is installed, its version, where it comes from, what it can run on this machine and what to do next, and the setups with their progress, as \`infer engine list\`. ${onlyOwner}`,
    response: List,
    errorCodes: errorGroups.command,
    async handle(_, exchange) {
      owner(exchange)
      const { engines, setups } = await engineSetups.list()
      return {
        engines: engines.map(engineView),
        setups: setups.map(setup => setupView(setup, engineSetups.run(setup.name))),
      }
    },
  }),
  route('GET /api/engine-setups/:name', 'admin:read', {
    summary: 'Get engine setup',
    description: `Returns the progress of the newest setup with this name, and what it has printed. ${onlyOwner}`,
    params: Named,
    response: Run,
    errorCodes: ['organization_mismatch', 'not_found'],
    handle({ params: { name } }, exchange) {
      owner(exchange)
      const run = engineSetups.run(name)
      if (run === null) throw notBegun(name)
      return runView(run)
    },
  }),
  route('POST /api/engine-setups/:name', 'admin:write', {
    bucket: 'api',
    summary: 'Start engine setup',
    description: `Downloads, tries and installs what \`infer engine setup <name>\` does, or replaces an outdated version: whoever calls this accepts the licences. Answers at once; \`GET /api/engine-setups/{name}\` has the progress. One setup runs at a time. Running engines keep their version; models use the new one from their next load on. ${onlyOwner}`,
    params: Named,
    status: 202,
    response: Run,
    errorCodes: [...errorGroups.command, 'conflict', 'not_found'],
    async handle({ params: { name } }, exchange) {
      owner(exchange)
      return runView(await engineSetups.begin(name))
    },
  }),
  route('DELETE /api/engine-setups/:name', 'admin:write', {
    summary: 'Cancel engine setup',
    description: `Stops a setup. What has arrived is kept, and the next setup continues it. ${onlyOwner}`,
    params: Named,
    response: Run,
    errorCodes: ['organization_mismatch', 'not_found'],
    handle({ params: { name } }, exchange) {
      owner(exchange)
      const run = engineSetups.cancel(name)
      if (run === null) throw new Failure('not_found', `The setup '${name}' does not run.`)
      return runView(run)
    },
  }),
]
