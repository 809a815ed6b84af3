import { batchWork } from '../core/batches/batch-work.ts'
import { cpuWork } from '../core/cpu/cpu-work.ts'
import { serveWork } from '../core/cpu/serve-work.ts'
import { taskWork } from '../core/tasks/preparation.ts'
import { stepWork } from '../core/tasks/steps/step-work.ts'
import { resultWork } from '../core/workflows/result-work.ts'
import { listWork } from '../gpu/launcher/kubernetes/list-work.ts'

/** Entry point of the pool's threads: the work of every layer of core, whose callers cli/server/app.ts combines, and that of gpu. */
export default serveWork(cpuWork, taskWork, stepWork, resultWork, batchWork, listWork)
