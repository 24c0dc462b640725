import js from '@eslint/js';
import tseslint from 'typescript-eslint';

/**
 * Who may import whom: core imports itself only; server and client never each other. test/layers.test.ts holds the
 * whole order.
 */
const forbid = (files, patterns) => ({ files, rules: { 'no-restricted-imports': ['error', { patterns }] } });

export default tseslint.config(
  { ignores: ['dist/**', 'build/**', 'node_modules/**', 'prebuilds/**', 'test/fixtures/**'] },
  js.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [...tseslint.configs.strictTypeChecked, ...tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { project: './tsconfig.json', tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/no-unused-vars': ['error', { ignoreRestSiblings: true }],
      '@typescript-eslint/prefer-readonly': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
    },
  },
  {
    files: ['**/*.mjs', '**/*.js'],
    languageOptions: {
      globals: Object.fromEntries(
        [
          'process',
          'console',
          'Buffer',
          'URL',
          'setTimeout',
          'clearTimeout',
          'performance',
          'AbortController',
          'AbortSignal',
          'fetch',
        ].map((name) => [name, 'readonly']),
      ),
    },
  },
  {
    files: ['adapters', 'client', 'core', 'native', 'net', 'server', 'tools'].map((folder) => `${folder}/**/*.ts`),
    rules: {
      'no-restricted-syntax': [
        'error',
        {
          selector:
            "BinaryExpression[operator='instanceof'][right.name=/^(AbortSignal|ArrayBuffer|DataView|Date|Map|Promise|RegExp|Set|SharedArrayBuffer|\\w+Array)$/]",
          message:
            'one of another realm (node:vm, jest) is none: use isBytes of core/raft/bytes.ts, or types of node:util',
        },
      ],
    },
  },
  {
    files: ['**/*.test.ts', 'test/**/*.ts'],
    rules: {
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-floating-promises': 'error',
      'no-restricted-syntax': [
        'error',
        {
          selector: "MemberExpression[property.name='only']:matches([object.name='test'], [object.object.name='test'])",
          message: 'the other tests of the file would not run',
        },
      ],
    },
  },
  forbid(
    ['core/**/*.ts'],
    [
      { regex: '^node:', message: 'core has no I/O' },
      { regex: '/(server|client|net|native|tools|bench|test)/', message: 'core imports itself only' },
    ],
  ),
  forbid(['net/**/*.ts'], [{ regex: '/(server|client|native|tools|bench|test)/', message: 'net imports core only' }]),
  forbid(
    ['client/**/*.ts'],
    [{ regex: '/(server|tools|bench|test)/', message: 'client imports core, net and native only' }],
  ),
  forbid(
    ['adapters/**/*.ts'],
    [{ regex: '/(server|tools|bench|test)/', message: 'adapters import client and core only' }],
  ),
  forbid(
    ['tools/**/*.ts'],
    [{ regex: '/(server|bench|test)/', message: 'tools import client, core, net and native only' }],
  ),
  forbid(
    ['server/**/*.ts'],
    [
      {
        regex: '/(client|tools|test)/',
        message: 'server imports core, net and native only (server/cli may import client, tools and bench)',
      },
    ],
  ),
  { files: ['server/cli/**/*.ts'], rules: { 'no-restricted-imports': 'off' } },
  {
    files: ['core', 'net', 'client', 'tools', 'server'].map((folder) => `${folder}/**/*.test.ts`),
    rules: { 'no-restricted-imports': 'off' },
  },
);
