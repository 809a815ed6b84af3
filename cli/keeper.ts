import { runKeeper } from '../gpu/launcher/keeper-process.ts'

/** Entry of the process that keeps engines. It imports little, because it lives beside every server. */
runKeeper(process.argv.at(-1)!, () => process.exit(0))
