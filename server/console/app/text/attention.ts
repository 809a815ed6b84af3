/** Texts of what needs attention. */
export const attentionText = {
  title: 'Needs attention',
  badge: (count: number) => (count === 1 ? '1 thing needs attention' : `${count} things need attention`),
  engineFailed: (model: string, count: number) =>
    `The engine of ${model} failed ${count === 1 ? 'once' : `${count} times`} since the server started.`,
  unavailable: (model: string) => `The model ${model} is unavailable.`,
  peer: (name: string, models: number) =>
    models === 0
      ? `The peer ${name} cannot be used.`
      : `${models === 1 ? 'The model' : `The ${models} models`} of the peer ${name} cannot be used.`,
  models: 'Open models',
  waiting: (count: number) =>
    count === 1 ? 'A request or job waits for it.' : `${count} requests and jobs wait for it.`,
  log: 'Open log',
  fault: 'The configuration file is not in force.',
  restart: (settings: string) => `Changed settings take effect at the next start of the server: ${settings}.`,
  configuration: 'Open configuration',
  conversations: 'No conversation is saved.',
  limit: (name: string, of: 'organization' | 'token', percent: number) =>
    `${name}: ${percent} % of the limit of ${of === 'organization' ? 'the organization' : 'the token'} is used${percent < 100 ? '' : '. More is refused'}.`,
  spending: 'Spending this month',
  usage: 'Open usage',
  check: (name: string) => `Check "${name}".`,
  checks: 'Open checks',
} as const
