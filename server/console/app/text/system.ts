import { named } from './named.ts'

export const systemText = {
  ...named('checks', 'configuration', 'backups', 'checkAgain'),
  tabs: 'Parts of this page',
  log: 'Server log',
  server: 'the server',
  licenses: 'Licences',
  ownOnly:
    'Checks, configuration, log and backups are for tokens of the organization that owns the machine. The licences are for everybody.',
  check: 'Check this machine',
  checkTitle: 'This machine has not been checked yet',
  checkNext:
    'The checks look at the program, the configuration, the disk, the database, the sandbox, the GPUs and the engines. They take some seconds, and change nothing.',
  checking: 'The checks run. They take some seconds, and minutes when GPU backends are tested for the first time.',
  checkedAt: 'Checked',
  verdict: (broken: number, warnings: number) =>
    broken > 0
      ? `${broken} ${broken === 1 ? 'problem' : 'problems'} to repair${warnings > 0 ? `, ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}` : ''}.`
      : warnings > 0
        ? `Everything works; ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}.`
        : 'Everything is fine.',
  states: named('fine', 'warning', 'broken'),
  file: (path: string) => `The configuration file is ${path}.`,
  noFile: (path: string) => `There is no ${path}, so everything has its default. Add the file to change something.`,
  edit: 'Settings are changed in this file. What a key means is also in the configuration guide.',
  search: 'Search settings',
  onlyChanged: 'Only what differs from the default',
  sources: named('file', 'command_line', 'default'),
  restart: 'The file has another value. It takes effect at the next start of the server.',
  noMatch: 'No setting matches',
  noMatchNext: 'Try another word, or show all settings.',
  environment: 'Environment variables',
  notSet: (without: string) => `not set: ${without}`,
  hidden: 'set; not shown, because it may be a secret',
  backupColumns: { ...named('file', 'size'), when: 'Written' },
  noBackups: 'There is no backup here yet',
  backupNext:
    'Before it upgrades the database, the server makes a backup here. To make one yourself, on the machine run:',
  backupMore: 'To make one yourself, on the machine run:',
  restoreMore: 'To go back to one, stop the server and run:',
  backupCommand: 'infer backup /backups/infer.db',
  restoreCommand: (path: string) => `infer restore ${path}`,
  folder: (path: string) => `Folder: ${path}`,
  licensesAbout: (count: number) => `infer contains ${count} works of others, under these licences.`,
  searchLicenses: 'Search works',
  noWork: 'No work matches',
  noWorkNext: 'Search for another name or licence.',
} as const
